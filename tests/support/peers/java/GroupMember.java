import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer group member that prints each of its events as a line of JSON, like tests/support/model/group_member.py.
 * Its argument is its options as JSON. It leaves the group and exits at the end of its standard input.
 */
public final class GroupMember implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final OutputStream out = System.out;
    private final TreeSet<Integer> owned = new TreeSet<>();
    private final Map<TopicPartition, OffsetAndMetadata> pending = new HashMap<>();
    private final KafkaConsumer<byte[], byte[]> consumer;

    private GroupMember(JsonNode options) {
        Map<String, Object> config = new HashMap<>();
        int session = options.get("session_timeout_ms").asInt();
        config.put("bootstrap.servers", options.get("servers").asText());
        config.put("group.id", options.get("group").asText());
        if (options.hasNonNull("instance")) {
            config.put("group.instance.id", options.get("instance").asText());
        }
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "earliest");
        String protocol = options.path("group_protocol").asText("classic");
        config.put("group.protocol", protocol);
        if (protocol.equals("consumer")) {
            if (options.hasNonNull("remote_assignor")) {
                config.put("group.remote.assignor", options.get("remote_assignor").asText());
            }
        } else {
            config.put("partition.assignment.strategy",
                Stream.of(options.get("strategy").asText().split(",")).map(ASSIGNORS::get).toList());
            config.put("session.timeout.ms", session);
            config.put("heartbeat.interval.ms", Math.min(500, session / 6));
        }
        config.put("max.poll.records", 40);
        config.put("metadata.max.age.ms", 5000);
        consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(options.get("topic").asText()), this);
    }

    public static void main(String[] args) throws Exception {
        GroupMember member = new GroupMember(JSON.readTree(args[0]));
        AtomicBoolean stopped = new AtomicBoolean();
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException e) {
                e.printStackTrace();
            }
            stopped.set(true);
        });
        watcher.setDaemon(true);
        watcher.start();
        member.report("started", JSON.createObjectNode());
        while (!stopped.get()) {
            member.turn();
        }
        member.consumer.close();
        member.report("closed", JSON.createObjectNode());
    }

    private void turn() throws InterruptedException {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> some = records.records(partition);
            long last = some.get(some.size() - 1).offset();
            report("records", JSON.createObjectNode().put("partition", partition.partition())
                .put("first", some.get(0).offset()).put("last", last));
            pending.put(partition, new OffsetAndMetadata(last + 1));
        }
        if (!records.isEmpty()) {
            Thread.sleep(5);
        }
        commit();
    }

    private void commit() {
        if (pending.isEmpty()) {
            return;
        }
        ObjectNode offsets = JSON.createObjectNode();
        pending.forEach((partition, offset) -> offsets.put(String.valueOf(partition.partition()), offset.offset()));
        report("committing", offsetsOf(offsets));
        try {
            consumer.commitSync(pending);
        } catch (KafkaException e) {
            report("commit_failed", offsetsOf(offsets).put("error", String.valueOf(e)));
            return;
        }
        report("committed", offsetsOf(offsets));
        pending.clear();
    }

    private static ObjectNode offsetsOf(ObjectNode offsets) {
        ObjectNode what = JSON.createObjectNode();
        what.set("offsets", offsets);
        return what;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        partitions.forEach(partition -> owned.add(partition.partition()));
        change("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        gone("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        gone("lost", partitions);
    }

    private void gone(String kind, Collection<TopicPartition> partitions) {
        partitions.forEach(partition -> owned.remove(partition.partition()));
        partitions.forEach(pending::remove);
        change(kind, partitions);
    }

    private void change(String kind, Collection<TopicPartition> partitions) {
        ObjectNode what = JSON.createObjectNode();
        ArrayNode numbers = what.putArray("partitions");
        partitions.stream().map(TopicPartition::partition).sorted().forEach(numbers::add);
        owned.forEach(what.putArray("owned")::add);
        int generation = consumer.groupMetadata().generationId();
        if (generation >= 0) {
            what.put("generation", generation);
        }
        report(kind, what);
    }

    private void report(String kind, ObjectNode what) {
        Map<String, Object> line = new TreeMap<>();
        line.put("time_ns", System.nanoTime());
        line.put("kind", kind);
        line.put("what", what);
        try {
            out.write((JSON.writeValueAsString(line) + "\n").getBytes(java.nio.charset.StandardCharsets.UTF_8));
            out.flush();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
