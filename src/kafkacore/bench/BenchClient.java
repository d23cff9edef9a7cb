import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Kafka's Java clients as a peer of "kafkacore bench": what worker.py and peers/ are in Python.
 *
 * In: name=value arguments, client settings as client.NAME=value. Out: one line of JSON; a receiver says
 * {"event": "ready"} first. Ends with its standard input, which only the parent holds.
 */
public final class BenchClient {
    private static final int WARM_UP = 0xFFFFFFFF;
    /** A poll gives up to so many at once. */
    private static final int MORE_THAN_ASKED = 10_000;
    private static final int SETTLE_MS = 500;
    private static final Duration POLL = Duration.ofMillis(200);

    private final Map<String, String> task;
    private final Properties settings;
    private final String topic;
    private final int records;
    private final int size;
    private final int warmUp;

    private BenchClient(Map<String, String> task, Properties settings) {
        this.task = task;
        this.settings = settings;
        topic = task.get("topic");
        records = Integer.parseInt(task.get("records"));
        size = Integer.parseInt(task.get("size"));
        warmUp = Integer.parseInt(task.get("warm_up_records"));
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> task = new HashMap<>();
        Properties settings = new Properties();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            if (parts[0].startsWith("client.")) {
                settings.put(parts[0].substring("client.".length()), parts[1]);
            } else {
                task.put(parts[0], parts[1]);
            }
        }
        if (task.containsKey("properties")) {
            try (var file = Files.newBufferedReader(Path.of(task.get("properties")))) {
                settings.load(file);
            }
        }
        Thread watch = new Thread(BenchClient::endWithParent);
        watch.setDaemon(true);
        watch.start();
        BenchClient client = new BenchClient(task, settings);
        switch (task.get("role")) {
            case "produce" -> client.produce();
            case "paced" -> client.paced();
            case "consume" -> client.consume();
            case "receive" -> client.receive();
            default -> throw new IllegalArgumentException(task.get("role"));
        }
        System.exit(0);
    }

    private static void endWithParent() {
        try {
            System.in.read();
        } catch (IOException gone) {
            // The same as its end.
        }
        Runtime.getRuntime().halt(1);
    }

    // ---- Sending -------------------------------------------------------------------------------------------

    private KafkaProducer<byte[], byte[]> warmProducer() {
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        byte[] value = new byte[size];
        Arrays.fill(value, 0, Integer.BYTES, (byte) 0xFF);
        for (int i = 0; i < warmUp; i++) {
            producer.send(new ProducerRecord<>(topic, value));
        }
        producer.flush();
        return producer;
    }

    private byte[][] values() throws IOException {
        byte[] all = Files.readAllBytes(Path.of(task.get("values_file")));
        byte[][] values = new byte[all.length / size][];
        for (int i = 0; i < values.length; i++) {
            values[i] = Arrays.copyOfRange(all, i * size, (i + 1) * size);
        }
        return values;
    }

    private void produce() throws IOException {
        byte[][] values = values();
        try (KafkaProducer<byte[], byte[]> producer = warmProducer()) {
            Meter meter = new Meter();
            int next = 0;
            for (int i = 0; i < records; i++) {
                producer.send(new ProducerRecord<>(topic, values[next]));
                next = next + 1 == values.length ? 0 : next + 1;
            }
            producer.flush();
            meter.stop();
            answer(meter, "");
        }
    }

    private void paced() throws IOException, InterruptedException {
        byte[][] values = values();
        double intervalNs = 1e9 / Double.parseDouble(task.get("rate"));
        long[] done = new long[records];
        AtomicInteger failed = new AtomicInteger();
        try (KafkaProducer<byte[], byte[]> producer = warmProducer()) {
            Thread.sleep(SETTLE_MS);
            Meter meter = new Meter();
            long start = System.nanoTime();
            for (int i = 0; i < records; i++) {
                long due = start + (long) (i * intervalNs);
                for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
                int index = i;
                producer.send(new ProducerRecord<>(topic, values[i % values.length]), (metadata, error) -> {
                    if (error == null) {
                        done[index] = System.nanoTime();
                    } else {
                        failed.incrementAndGet();
                    }
                });
            }
            producer.flush();
            meter.stop();
            answer(meter, String.format(Locale.ROOT, ", \"start_ms\": %.6f, \"failed\": %d, \"latency_ms\": %s",
                start / 1e6, failed.get(), percentiles(done, start, intervalNs)));
        }
    }

    private static String percentiles(long[] done, long start, double intervalNs) {
        double[] latencies = new double[done.length];
        int count = 0;
        for (int i = 0; i < done.length; i++) {
            if (done[i] != 0) {
                latencies[count++] = (done[i] - (start + (long) (i * intervalNs))) / 1e6;
            }
        }
        if (count == 0) {
            return "{}";
        }
        double[] ordered = Arrays.copyOf(latencies, count);
        Arrays.sort(ordered);
        List<String> found = new ArrayList<>();
        String[] names = {"p50", "p99", "p99.9", "max"};
        long[] shares = {500, 990, 999, 1000};
        for (int i = 0; i < names.length; i++) {
            int at = (int) ((count * shares[i] + 999) / 1000) - 1;
            found.add(String.format(Locale.ROOT, "\"%s\": %.6f", names[i], ordered[at]));
        }
        return "{" + String.join(", ", found) + "}";
    }

    // ---- Reading -------------------------------------------------------------------------------------------

    private KafkaConsumer<byte[], byte[]> consumer() {
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Collection<TopicPartition> all = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(task.get("partitions")); i++) {
            all.add(new TopicPartition(topic, i));
        }
        consumer.assign(all);
        return consumer;
    }

    /** Numbers and times of what came; gives up when nothing came for long. */
    private final class Arrivals {
        final int[] numbers;
        final long[] times;
        int count;
        int strange;
        private long last = System.nanoTime();

        Arrivals(int limit) {
            numbers = new int[limit];
            times = new long[limit];
        }

        void read(KafkaConsumer<byte[], byte[]> consumer, int wanted, Runnable afterFirstPoll) {
            long patience = (long) (Double.parseDouble(task.get("patience_s")) * 1e9);
            Runnable once = afterFirstPoll;
            int got = 0;
            while (got < wanted) {
                var polled = consumer.poll(POLL);
                long now = System.nanoTime();
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    take(record.value(), now);
                }
                got += polled.count();
                once.run();
                once = () -> { };
                if (!polled.isEmpty()) {
                    last = now;
                } else if (now - last > patience) {
                    throw new IllegalStateException("no record of " + topic + " came for long");
                }
            }
        }

        private void take(byte[] value, long now) {
            if (value == null || value.length != size || count == numbers.length) {
                strange++;
                return;
            }
            numbers[count] = ByteBuffer.wrap(value).getInt();
            times[count++] = now;
        }

        /** As Sequences.verdict in Python: number i % distinct for each record i. */
        String verdict() throws IOException {
            int distinct = (int) (Files.size(Path.of(task.get("values_file"))) / size);
            int[] counts = new int[distinct];
            for (int i = 0; i < count; i++) {
                int number = numbers[i];
                if (number >= 0 && number < distinct) {
                    counts[number]++;
                } else if (number != WARM_UP) {
                    strange++;
                }
            }
            long lost = 0;
            long duplicated = 0;
            for (int i = 0; i < distinct; i++) {
                int missing = records / distinct + (i < records % distinct ? 1 : 0) - counts[i];
                lost += Math.max(0, missing);
                duplicated += Math.max(0, -missing);
            }
            if (lost + duplicated + strange == 0) {
                return ", \"void\": null";
            }
            return String.format(", \"void\": \"%d lost, %d duplicated, %d never sent\"", lost, duplicated, strange);
        }
    }

    private void consume() throws IOException {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            int warm = Math.min(warmUp, records);
            // Room for what a poll gives beyond it.
            new Arrivals(warm + MORE_THAN_ASKED).read(consumer, warm, () -> { });
            consumer.seekToBeginning(consumer.assignment());
            Arrivals arrivals = new Arrivals(records + MORE_THAN_ASKED);
            Meter meter = new Meter();
            arrivals.read(consumer, records, () -> { });
            meter.stop();
            answer(meter, arrivals.verdict());
        }
    }

    private void receive() throws IOException {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            Arrivals arrivals = new Arrivals(records + warmUp);
            arrivals.read(consumer, warmUp, () -> say("{\"event\": \"ready\"}"));
            Meter meter = new Meter();
            arrivals.read(consumer, records + warmUp - arrivals.count, () -> { });
            meter.stop();
            try (DataOutputStream file = new DataOutputStream(new BufferedOutputStream(
                    Files.newOutputStream(Path.of(task.get("times_file")))))) {
                ByteBuffer pair = ByteBuffer.allocate(2 * Double.BYTES).order(ByteOrder.nativeOrder());
                for (int i = 0; i < arrivals.count; i++) {
                    if (arrivals.numbers[i] != WARM_UP) {
                        pair.clear();
                        pair.putDouble(arrivals.numbers[i]).putDouble(arrivals.times[i] / 1e6);
                        file.write(pair.array());
                    }
                }
            }
            answer(meter, arrivals.verdict());
        }
    }

    // ---- What was used -------------------------------------------------------------------------------------

    private void answer(Meter meter, String more) {
        say(String.format(Locale.ROOT,
            "{\"records\": %d, \"seconds\": %.9f, \"cpu_s\": %.9f, \"start_rss_mib\": %.3f, \"peak_rss_mib\": %.3f, "
                + "\"client_version\": \"%s\", \"java_version\": \"%s\"%s}",
            records, meter.seconds, meter.cpuSeconds, meter.startRss, meter.peakRss,
            AppInfoParser.getVersion(), System.getProperty("java.version"), more));
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Wall, processor time of all threads of the JVM, and resident memory in MiB. */
    private static final class Meter {
        private final com.sun.management.OperatingSystemMXBean system =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        final double startRss;
        double peakRss;
        double seconds;
        double cpuSeconds;
        private final long startCpu;
        private final long start;

        Meter() {
            System.gc();
            try {
                Files.writeString(Path.of("/proc/self/clear_refs"), "5");
            } catch (IOException absent) {
                // Not Linux: the peak is then that of the whole process.
            }
            startRss = status("VmRSS:");
            startCpu = system.getProcessCpuTime();
            start = System.nanoTime();
        }

        void stop() {
            seconds = (System.nanoTime() - start) / 1e9;
            cpuSeconds = (system.getProcessCpuTime() - startCpu) / 1e9;
            peakRss = status("VmHWM:");
        }

        private static double status(String name) {
            try {
                for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                    if (line.startsWith(name)) {
                        return Double.parseDouble(line.replaceAll("[^0-9]", "")) / 1024;
                    }
                }
            } catch (IOException absent) {
                // As above.
            }
            return 0;
        }
    }
}
