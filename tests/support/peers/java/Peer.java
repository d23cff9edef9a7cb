import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Runs Kafka's Java clients by commands. Each line of standard input is a command, and each line of standard output its
 * answer, both as JSON with bytes in base64. One JVM serves a whole test run. Every command has a time limit.
 */
public final class Peer {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Peer() {
    }

    public static void main(String[] args) throws Exception {
        // Flush explicitly after each line, because println would write a long line in many pieces.
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode command = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                run(command, answer);
            } catch (Exception e) {
                answer = JSON.createObjectNode().put("error", String.valueOf(e));
                e.printStackTrace();
            }
            answer.set("number", command.get("number"));
            out.write(JSON.writeValueAsBytes(answer));
            out.write('\n');
            out.flush();
        }
    }

    private static void run(JsonNode command, ObjectNode answer) throws Exception {
        String name = command.get("command").asText();
        switch (name) {
            case "create_topic" -> createTopic(command);
            case "delete_topic" -> deleteTopic(command);
            case "produce" -> produce(command, answer);
            case "transact" -> transact(command, answer.putArray("outcomes"));
            case "consume" -> consume(command, answer);
            case "offsets" -> offsets(command, answer);
            case "commit" -> commit(command);
            case "committed" -> committed(command, answer);
            case "group_offsets" -> groupOffsets(command, answer.putArray("offsets"));
            case "alter_group_offsets" -> alterGroupOffsets(command);
            case "delete_group_offsets" -> deleteGroupOffsets(command);
            case "partitions_for_keys" -> partitionsForKeys(command, answer);
            default -> throw new IllegalArgumentException("unknown command " + name);
        }
    }

    // ---- Commands -------------------------------------------------------------------------------------------

    private static void createTopic(JsonNode command) throws Exception {
        Map<String, String> config = new HashMap<>();
        command.path("config").fields().forEachRemaining(
            entry -> config.put(entry.getKey(), entry.getValue().asText()));
        String name = command.get("topic").asText();
        int count = command.get("partitions").asInt();
        try (Admin admin = Admin.create(clientConfig(command))) {
            NewTopic topic = new NewTopic(name, count, (short) 1).configs(config);
            long deadline = System.nanoTime() + limit(command) * 1_000_000;
            while (!created(admin, topic, deadline)) {
                Thread.sleep(10);
            }
            // Apache Kafka lists a partition before it serves it. In between, a producer's first batch may be rejected and
            // its second one accepted, after which the first one is permanently out of order.
            Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
            for (int partition = 0; partition < count; partition++) {
                latest.put(new TopicPartition(name, partition), OffsetSpec.latest());
            }
            while (!served(admin, latest) && System.nanoTime() < deadline) {
                Thread.sleep(10);
            }
        }
    }

    /** A broker that stood still longer than its session can have no replicas until its next heartbeat. */
    private static boolean created(Admin admin, NewTopic topic, long deadline) throws Exception {
        try {
            admin.createTopics(List.of(topic)).all().get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
            return true;
        } catch (ExecutionException e) {
            if (e.getCause() instanceof InvalidReplicationFactorException && System.nanoTime() < deadline) {
                return false;
            }
            throw e;
        }
    }

    private static boolean served(Admin admin, Map<TopicPartition, OffsetSpec> partitions) throws Exception {
        try {
            admin.listOffsets(partitions).all().get();
            return true;
        } catch (ExecutionException e) {
            if (e.getCause() instanceof UnknownTopicOrPartitionException) {
                return false;
            }
            throw e;
        }
    }

    private static void deleteTopic(JsonNode command) throws Exception {
        try (Admin admin = Admin.create(clientConfig(command))) {
            List<String> topics = List.of(command.get("topic").asText());
            admin.deleteTopics(topics).all().get(limit(command), TimeUnit.MILLISECONDS);
            // As for the creation, wait until the change is visible, not only accepted.
            long deadline = System.nanoTime() + limit(command) * 1_000_000;
            while (admin.listTopics().names().get().contains(topics.get(0)) && System.nanoTime() < deadline) {
                Thread.sleep(10);
            }
        }
    }

    private static void produce(JsonNode command, ObjectNode answer) throws Exception {
        Map<String, Object> config = clientConfig(command);
        String end = command.path("transaction").asText("");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (!end.isEmpty()) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : command.get("records")) {
                sent.add(producer.send(new ProducerRecord<>(
                    record.get("topic").asText(),
                    record.hasNonNull("partition") ? record.get("partition").asInt() : null,
                    record.hasNonNull("timestamp") ? record.get("timestamp").asLong() : null,
                    bytes(record.get("key")), bytes(record.get("value")), headers(record.get("headers")))));
            }
            producer.flush();
            ArrayNode metadata = answer.putArray("metadata");
            for (Future<RecordMetadata> future : sent) {
                RecordMetadata one = future.get(limit(command), TimeUnit.MILLISECONDS);
                metadata.addObject().put("partition", one.partition()).put("offset", one.offset());
            }
            if (end.equals("commit")) {
                producer.commitTransaction();
            } else if (end.equals("abort")) {
                producer.abortTransaction();
            }
        }
    }

    private static void transact(JsonNode command, ArrayNode outcomes) {
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(clientConfig(command), new ByteArraySerializer(), new ByteArraySerializer());
        try {
            producer.initTransactions();
            for (JsonNode transaction : command.get("transactions")) {
                ObjectNode one = outcomes.addObject();
                transactOnce(producer, command, transaction, one);
                if (one.get("error").asText().length() > 0) {
                    return;
                }
            }
        } catch (KafkaException e) {
            outcomes.addObject().put("outcome", "failed").put("error", String.valueOf(e));
        } finally {
            producer.close(Duration.ofSeconds(1));
        }
    }

    private static void transactOnce(
        KafkaProducer<byte[], byte[]> producer, JsonNode command, JsonNode transaction, ObjectNode one) {
        boolean commits = transaction.get("commits").asBoolean();
        boolean isEnding = false;
        try {
            producer.beginTransaction();
            for (JsonNode record : transaction.get("records")) {
                producer.send(new ProducerRecord<>(record.get("topic").asText(), record.get("partition").asInt(), null,
                    record.get("value").binaryValue()));
            }
            if (transaction.hasNonNull("offset")) {
                TopicPartition place = new TopicPartition(command.get("topic").asText(), 0);
                producer.sendOffsetsToTransaction(
                    Map.of(place, new OffsetAndMetadata(transaction.get("offset").asLong())),
                    new ConsumerGroupMetadata(command.get("group").asText()));
            }
            producer.flush();
            while (transaction.hasNonNull("held_until") && !Files.exists(Path.of(transaction.get("held_until").asText()))) {
                Thread.sleep(10);
            }
            isEnding = true;
            if (commits) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
            one.put("outcome", commits ? "committed" : "aborted").put("error", "");
        } catch (Exception e) {
            one.put("outcome", isEnding && commits ? "unknown" : "failed").put("error", String.valueOf(e));
        }
    }

    private static void consume(JsonNode command, ObjectNode answer) {
        long wanted = command.hasNonNull("count") ? command.get("count").asLong() : Long.MAX_VALUE;
        ArrayNode records = answer.putArray("records");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            List<TopicPartition> partitions = partitions(consumer, command);
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = command.hasNonNull("count") ? null : ends(consumer, partitions, command);
            long deadline = System.nanoTime() + limit(command) * 1_000_000;
            while (records.size() < wanted && !reached(consumer, ends) && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    describe(record, records.addObject());
                }
            }
            ObjectNode behind = answer.putObject("behind");
            if (ends != null) {
                ends.forEach((tp, end) -> {
                    long position = consumer.position(tp);
                    if (position < end) {
                        behind.putArray("" + tp.partition()).add(position).add(end);
                    }
                });
            }
        }
    }

    /** Returns the end offsets of the partitions, at least those given in the command. */
    private static Map<TopicPartition, Long> ends(
        KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions, JsonNode command) {
        Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(partitions));
        command.path("at_least").fields().forEachRemaining(known -> ends.merge(
            new TopicPartition(command.get("topic").asText(), Integer.parseInt(known.getKey())),
            known.getValue().asLong(), Math::max));
        return ends;
    }

    private static boolean reached(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends) {
        return ends != null
            && ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
    }

    private static void offsets(JsonNode command, ObjectNode answer) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            List<TopicPartition> partitions = partitions(consumer, command);
            ObjectNode beginning = answer.putObject("beginning");
            consumer.beginningOffsets(partitions).forEach((tp, offset) -> beginning.put("" + tp.partition(), offset));
            ObjectNode end = answer.putObject("end");
            consumer.endOffsets(partitions).forEach((tp, offset) -> end.put("" + tp.partition(), offset));
            ArrayNode found = answer.putArray("for_times");
            for (JsonNode timestamp : command.path("timestamps")) {
                ObjectNode byPartition = found.addObject();
                Map<TopicPartition, Long> asked = new HashMap<>();
                partitions.forEach(tp -> asked.put(tp, timestamp.asLong()));
                for (Map.Entry<TopicPartition, OffsetAndTimestamp> one : consumer.offsetsForTimes(asked).entrySet()) {
                    String partition = "" + one.getKey().partition();
                    if (one.getValue() == null) {
                        byPartition.putNull(partition);
                    } else {
                        byPartition.putArray(partition).add(one.getValue().offset()).add(one.getValue().timestamp());
                    }
                }
            }
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> named(JsonNode command) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode one : command.get("offsets")) {
            TopicPartition place = new TopicPartition(command.get("topic").asText(), one.get("partition").asInt());
            int epoch = one.get("leader_epoch").asInt();
            offsets.put(place, new OffsetAndMetadata(
                one.get("offset").asLong(), epoch < 0 ? Optional.empty() : Optional.of(epoch),
                one.get("metadata").asText()));
        }
        return offsets;
    }

    private static void commit(JsonNode command) {
        Map<TopicPartition, OffsetAndMetadata> offsets = named(command);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            consumer.assign(offsets.keySet());
            consumer.commitSync(offsets);
        }
    }

    private static void committed(JsonNode command, ObjectNode answer) {
        ArrayNode offsets = answer.putArray("offsets");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            consumer.committed(new HashSet<>(partitions(consumer, command))).forEach((tp, committed) -> {
                put(offsets, tp, committed);
            });
        }
    }

    private static void put(ArrayNode offsets, TopicPartition tp, OffsetAndMetadata committed) {
        if (committed != null) {
            offsets.addObject().put("partition", tp.partition()).put("offset", committed.offset())
                .put("metadata", committed.metadata()).put("leader_epoch", committed.leaderEpoch().orElse(-1));
        }
    }

    private static void groupOffsets(JsonNode command, ArrayNode offsets) throws Exception {
        String topic = command.get("topic").asText();
        try (Admin admin = Admin.create(clientConfig(command))) {
            admin.listConsumerGroupOffsets(command.get("group").asText()).partitionsToOffsetAndMetadata()
                .get(limit(command), TimeUnit.MILLISECONDS).forEach((tp, committed) -> {
                    if (tp.topic().equals(topic)) {
                        put(offsets, tp, committed);
                    }
                });
        }
    }

    private static void alterGroupOffsets(JsonNode command) throws Exception {
        try (Admin admin = Admin.create(clientConfig(command))) {
            admin.alterConsumerGroupOffsets(command.get("group").asText(), named(command)).all()
                .get(limit(command), TimeUnit.MILLISECONDS);
        }
    }

    private static void deleteGroupOffsets(JsonNode command) throws Exception {
        try (Admin admin = Admin.create(clientConfig(command))) {
            admin.deleteConsumerGroupOffsets(command.get("group").asText(), named(command).keySet()).all()
                .get(limit(command), TimeUnit.MILLISECONDS);
        }
    }

    private static void partitionsForKeys(JsonNode command, ObjectNode answer) throws Exception {
        ArrayNode chosen = answer.putArray("partitions");
        for (JsonNode key : command.get("keys")) {
            chosen.add(BuiltInPartitioner.partitionForKey(key.binaryValue(), command.get("partition_count").asInt()));
        }
    }

    // ---- To and from JSON -----------------------------------------------------------------------------------

    private static long limit(JsonNode command) {
        return command.path("timeout_ms").asLong(30_000);
    }

    private static Map<String, Object> clientConfig(JsonNode command) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", command.get("bootstrap_servers").asText());
        // Report a broker that does not respond instead of waiting for it: every command ends within half a minute.
        config.put("request.timeout.ms", "10000");
        config.put("default.api.timeout.ms", "20000");
        config.put("delivery.timeout.ms", "30000");
        config.put("max.block.ms", "20000");
        command.path("client_config").fields().forEachRemaining(
            entry -> config.put(entry.getKey(), entry.getValue().asText()));
        return config;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(JsonNode command) {
        return new KafkaConsumer<>(clientConfig(command), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer, JsonNode command) {
        List<TopicPartition> found = new ArrayList<>();
        for (PartitionInfo info : consumer.partitionsFor(command.get("topic").asText())) {
            found.add(new TopicPartition(info.topic(), info.partition()));
        }
        return found;
    }

    private static byte[] bytes(JsonNode node) throws Exception {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    private static Iterable<Header> headers(JsonNode node) throws Exception {
        if (node == null) {
            return Collections.emptyList();
        }
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : node) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        return headers;
    }

    private static void describe(ConsumerRecord<byte[], byte[]> record, ObjectNode to) {
        to.put("partition", record.partition()).put("offset", record.offset());
        to.put("timestamp", record.timestamp()).put("timestamp_type", record.timestampType().id);
        to.put("key", text(record.key())).put("value", text(record.value()));
        ArrayNode headers = to.putArray("headers");
        record.headers().forEach(header -> headers.addArray().add(header.key()).add(text(header.value())));
    }

    private static String text(byte[] content) {
        return Optional.ofNullable(content).map(Base64.getEncoder()::encodeToString).orElse(null);
    }
}
