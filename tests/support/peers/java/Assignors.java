import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.Utils;

/**
 * Runs Kafka's assignors and its hash of a group id. Each line of standard input is a JSON object, and each line of
 * standard output is its answer. Subscriptions and assignments are encoded as in the group protocol.
 *
 * <p>{"assignor", "repeat", "partitions": {topic: [[rack, ...], ...]}, "members": [[id, instance or null, blob], ...]}
 * gives {"assignments": {id: blob}, "subscriptions": [blob, ...], "best_nanos"}; {"partitions_count", "groups": [UTF-16 in
 * hexadecimal, ...]} gives {"partitions": [number, ...]}.
 */
public final class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Assignors() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            if (asked.has("groups")) {
                place(asked, answer);
            } else {
                try {
                    assign(asked, answer);
                } catch (RuntimeException e) {
                    answer = JSON.createObjectNode().put("error", String.valueOf(e));
                }
            }
            out.print(JSON.writeValueAsString(answer) + "\n");
            out.flush();
        }
    }

    private static void place(JsonNode asked, ObjectNode answer) {
        ArrayNode partitions = answer.putArray("partitions");
        for (JsonNode group : asked.get("groups")) {
            String hexadecimal = group.asText();
            StringBuilder name = new StringBuilder();
            for (int i = 0; i < hexadecimal.length(); i += 4) {
                name.append((char) Integer.parseInt(hexadecimal.substring(i, i + 4), 16));
            }
            partitions.add(Utils.abs(name.toString().hashCode()) % asked.get("partitions_count").asInt());
        }
    }

    private static void assign(JsonNode asked, ObjectNode answer) {
        Cluster cluster = cluster(asked.get("partitions"));
        ArrayNode again = answer.putArray("subscriptions");
        for (JsonNode member : asked.get("members")) {
            again.add(encoded(ConsumerProtocol.serializeSubscription(subscription(member))));
        }
        long best = Long.MAX_VALUE;
        Map<String, Assignment> assignments = Map.of();
        for (int i = 0; i < asked.path("repeat").asInt(1); i++) {
            Map<String, Subscription> subscriptions = new HashMap<>();
            asked.get("members").forEach(member -> subscriptions.put(member.get(0).asText(), subscription(member)));
            ConsumerPartitionAssignor assignor = assignor(asked.get("assignor").asText());
            long start = System.nanoTime();
            assignments = assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
            best = Math.min(best, System.nanoTime() - start);
        }
        answer.put("best_nanos", best);
        ObjectNode blobs = answer.putObject("assignments");
        assignments.forEach((member, made) -> blobs.put(member, encoded(ConsumerProtocol.serializeAssignment(made))));
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    private static Subscription subscription(JsonNode member) {
        ByteBuffer blob = ByteBuffer.wrap(Base64.getDecoder().decode(member.get(2).asText()));
        Subscription subscription = ConsumerProtocol.deserializeSubscription(blob);
        if (!member.get(1).isNull()) {
            subscription.setGroupInstanceId(Optional.of(member.get(1).asText()));
        }
        return subscription;
    }

    private static String encoded(ByteBuffer buffer) {
        return Base64.getEncoder().encodeToString(Utils.toArray(buffer));
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            int number = 0;
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                racks.forEach(rack -> replicas.add(nodes.computeIfAbsent(rack.asText(),
                    name -> new Node(nodes.size(), "localhost", 9092, name))));
                if (replicas.isEmpty()) {
                    replicas.add(nodes.computeIfAbsent("", name -> new Node(nodes.size(), "localhost", 9092)));
                }
                Node[] array = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number++, array[0], array, array));
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }
}
