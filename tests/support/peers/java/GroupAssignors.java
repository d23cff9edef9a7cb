import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Runs the assignors of Kafka's group coordinator (KIP-848). Each line of standard input is a JSON object, and each line
 * of standard output is its answer.
 *
 * <p>{"assignor", "homogeneous", "ordered", "repeat", "topics": [[id, partition count], ...], "subscriptions": [[topic,
 * ...], ...], "members": [[id, instance or null, subscription, [[topic, partition, ...], ...]], ...]} gives
 * {"assignments": {id: [[topic, partition, ...], ...]}, "wall_nanos": [number, ...], "cpu_nanos": [number, ...]} or
 * {"error"}. Topics and subscriptions are numbers of their lists; the last lists of a member are its assignment.
 *
 * <p>With "ordered", members, topics and partitions are iterated in the order of the question, which hash tables would
 * change. Otherwise the tables are those of the group coordinator.
 */
public final class GroupAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private GroupAssignors() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer;
            try {
                answer = new Question(JSON.readTree(line)).answer();
            } catch (PartitionAssignorException e) {
                answer = JSON.createObjectNode().put("error", e.getMessage());
            }
            out.print(JSON.writeValueAsString(answer) + "\n");
            out.flush();
        }
    }

    private static final class Question {
        private final JsonNode asked;
        private final boolean isOrdered;
        private final List<Uuid> topics = new ArrayList<>();
        private final Map<Uuid, Integer> numbers = new HashMap<>();
        private final Map<Uuid, Integer> counts = new HashMap<>();
        private final Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();

        Question(JsonNode asked) {
            this.asked = asked;
            isOrdered = asked.get("ordered").asBoolean();
            for (JsonNode topic : asked.get("topics")) {
                UUID id = UUID.fromString(topic.get(0).asText());
                Uuid topicId = new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
                numbers.put(topicId, topics.size());
                topics.add(topicId);
                if (!topic.get(1).isNull()) {
                    counts.put(topicId, topic.get(1).asInt());
                }
            }
        }

        private GroupSpec group() {
            List<Set<Uuid>> subscriptions = new ArrayList<>();
            for (JsonNode subscription : asked.get("subscriptions")) {
                Set<Uuid> topicIds = new HashSet<>();
                subscription.forEach(topic -> topicIds.add(topics.get(topic.asInt())));
                subscriptions.add(topicIds);
            }
            Map<String, MemberSubscriptionAndAssignmentImpl> members = isOrdered ? new LinkedHashMap<>() : new HashMap<>();
            for (JsonNode member : asked.get("members")) {
                String id = member.get(0).asText();
                Optional<String> instance = Optional.ofNullable(member.get(1).textValue());
                members.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instance,
                    subscriptions.get(member.get(2).asInt()), new Assignment(assigned(id, member.get(3)))));
            }
            SubscriptionType type =
                asked.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
            return new GroupSpecImpl(members, type, inverted);
        }

        private Map<Uuid, Set<Integer>> assigned(String member, JsonNode lists) {
            Map<Uuid, Set<Integer>> assigned = isOrdered ? new LinkedHashMap<>() : new HashMap<>();
            for (JsonNode list : lists) {
                Uuid topicId = topics.get(list.get(0).asInt());
                Set<Integer> partitions = isOrdered ? new LinkedHashSet<>() : new HashSet<>();
                for (int i = 1; i < list.size(); i++) {
                    partitions.add(list.get(i).asInt());
                    inverted.computeIfAbsent(topicId, id -> new HashMap<>()).put(list.get(i).asInt(), member);
                }
                assigned.put(topicId, partitions);
            }
            return assigned;
        }

        ObjectNode answer() {
            ConsumerGroupPartitionAssignor assignor =
                asked.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            ObjectNode answer = JSON.createObjectNode();
            ArrayNode wall = answer.putArray("wall_nanos");
            ArrayNode cpu = answer.putArray("cpu_nanos");
            GroupSpec group = group();
            SubscribedTopicDescriber described = new Described();
            GroupAssignment made = null;
            for (int i = 0; i < asked.get("repeat").asInt(); i++) {
                long startWall = System.nanoTime();
                long startCpu = threads.getCurrentThreadCpuTime();
                made = assignor.assign(group, described);
                cpu.add(threads.getCurrentThreadCpuTime() - startCpu);
                wall.add(System.nanoTime() - startWall);
            }
            ObjectNode assignments = answer.putObject("assignments");
            made.members().forEach((id, member) -> {
                ArrayNode lists = assignments.putArray(id);
                member.partitions().forEach((topicId, partitions) -> {
                    ArrayNode list = lists.addArray().add(numbers.get(topicId));
                    new TreeSet<>(partitions).forEach(partition -> list.add(partition.intValue()));
                });
            });
            return answer;
        }

        private final class Described implements SubscribedTopicDescriber {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                throw new AssertionError("the assignor reads racks");
            }
        }
    }
}
