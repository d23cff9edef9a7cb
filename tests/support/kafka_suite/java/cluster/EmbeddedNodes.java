package kafkacore.suite;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;

/**
 * A cluster of {@code kafkacore.testing.EmbeddedCluster}. All clusters of this JVM are in one Python process, which
 * {@code kafka_suite/nodes.py} runs: it reads one JSON object per line and answers each with one line.
 */
public final class EmbeddedNodes implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static Process python;
    private static BufferedWriter requests;
    private static BufferedReader answers;

    private final Map<String, Object> properties;
    private final Map<Integer, Map<String, Object>> ofNodes = new TreeMap<>();
    private final int cluster;
    private final String clusterId;
    private final Map<Integer, String> addresses = new TreeMap<>();
    private final Map<Integer, Map<String, Integer>> ports = new TreeMap<>();

    /** Start nodes with the ids 0, 1, 2, … Properties are a broker's; those of single nodes override them. */
    public EmbeddedNodes(int nodes, Map<String, ?> properties, Map<Integer, ? extends Map<String, ?>> ofNodes) {
        this(0, nodes, properties, ofNodes);
    }

    /** Start nodes with consecutive ids. */
    public EmbeddedNodes(
            int first, int nodes, Map<String, ?> properties, Map<Integer, ? extends Map<String, ?>> ofNodes) {
        ObjectNode request = JSON.createObjectNode().put("do", "start").put("first", first).put("nodes", nodes);
        addTo(request.putObject("properties"), properties);
        ObjectNode single = request.putObject("of_nodes");
        ofNodes.forEach((node, given) -> addTo(single.putObject(node.toString()), given));
        this.properties = Map.copyOf(properties);
        ofNodes.forEach((node, given) -> this.ofNodes.put(node, Map.copyOf(given)));
        Notes.cluster();
        JsonNode started = ask(request);
        cluster = started.get("cluster").asInt();
        clusterId = started.get("cluster_id").asText();
        started.get("addresses").properties().forEach(
            node -> addresses.put(Integer.valueOf(node.getKey()), node.getValue().asText()));
        started.get("ports").properties().forEach(node -> {
            Map<String, Integer> bound = ports.computeIfAbsent(Integer.valueOf(node.getKey()), id -> new TreeMap<>());
            node.getValue().properties().forEach(listener -> bound.put(listener.getKey(), listener.getValue().asInt()));
        });
        started.get("ignored").properties().forEach(
            setting -> Notes.ignored(setting.getKey(), setting.getValue().asText()));
    }

    private static void addTo(ObjectNode object, Map<String, ?> properties) {
        properties.forEach((name, value) ->
            object.put(name, value instanceof Password secret ? secret.value() : String.valueOf(value)));
    }

    /** The replicas of a partition, with the leader or -1, and the state of its log, which all replicas share. */
    public record Replicas(
            int leader, int epoch, List<Integer> nodes, List<Integer> inSync, long start, long highWatermark, long end,
            List<ProducerStateEntry> producers) {
    }

    /** A topic. */
    public record Topic(Uuid id, List<Replicas> partitions) {
    }

    /** Return the properties of a node as given. */
    public Map<String, Object> properties(int node) {
        Map<String, Object> given = new HashMap<>(properties);
        given.putAll(ofNodes.getOrDefault(node, Map.of()));
        return given;
    }

    /** Return the current value of a number that can be changed at run time, by the name of its field in {@code BrokerConfig}. */
    public int setting(String name) {
        return ask(request("setting").put("name", name)).get("value").asInt();
    }

    public Set<String> topicNames() {
        Set<String> names = new TreeSet<>();
        ask(request("topics")).get("topics").forEach(name -> names.add(name.asText()));
        return names;
    }

    /** Return the state of a topic, if it exists. */
    public Optional<Topic> topic(String name) {
        JsonNode topic = ask(request("topic").put("topic", name)).get("topic");
        if (topic.isNull()) {
            return Optional.empty();
        }
        List<Replicas> partitions = new ArrayList<>();
        topic.get("partitions").forEach(each -> partitions.add(new Replicas(
            each.get("leader").asInt(), each.get("epoch").asInt(), integers(each.get("nodes")), integers(each.get("in_sync")),
            each.get("start").asLong(), each.get("high_watermark").asLong(), each.get("end").asLong(),
            producers(each.get("producers")))));
        return Optional.of(new Topic(Uuid.fromString(topic.get("id").asText()), partitions));
    }

    private static List<ProducerStateEntry> producers(JsonNode list) {
        List<ProducerStateEntry> found = new ArrayList<>();
        list.forEach(each -> {
            long firstOffset = each.get(4).asLong();
            found.add(new ProducerStateEntry(each.get(0).asLong(), (short) each.get(1).asInt(), each.get(2).asInt(),
                each.get(3).asLong(), firstOffset < 0 ? OptionalLong.empty() : OptionalLong.of(firstOffset)));
        });
        return found;
    }

    private static List<Integer> integers(JsonNode list) {
        List<Integer> found = new ArrayList<>();
        list.forEach(each -> found.add(each.asInt()));
        return found;
    }

    public String clusterId() {
        return clusterId;
    }

    public Set<Integer> nodeIds() {
        return addresses.keySet();
    }

    /** Return {@code host:port} of each node, also of stopped ones. */
    public String bootstrapServers() {
        return String.join(",", addresses.values());
    }

    /** Return the host that all nodes advertise. */
    public String host() {
        String address = addresses.values().iterator().next();
        return address.substring(0, address.lastIndexOf(':'));
    }

    /** Return the port of the first listener of a node. */
    public int port(int node) {
        String address = addresses.get(node);
        return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    }

    /** Return the port of each listener of a node, by the listener's name in capitals. */
    public Map<String, Integer> ports(int node) {
        return ports.get(node);
    }

    public Set<Integer> runningNodes() {
        Set<Integer> running = new TreeSet<>();
        ask(request("running")).get("nodes").forEach(node -> running.add(node.asInt()));
        return running;
    }

    /** Stop a node. A stopped one stays stopped, as with Kafka's {@code KafkaBroker.shutdown}. */
    public void stop(int node) {
        ask(request("stop").put("node", node));
    }

    /** Start a stopped node. */
    public void start(int node) {
        ask(request("start_node").put("node", node));
    }

    @Override
    public void close() {
        ask(request("close"));
    }

    private ObjectNode request(String what) {
        return JSON.createObjectNode().put("do", what).put("cluster", cluster);
    }

    private static synchronized JsonNode ask(ObjectNode request) {
        try {
            if (python == null || !python.isAlive()) {
                startPython();
            }
            requests.write(request + "\n");
            requests.flush();
            String line = answers.readLine();
            if (line == null) {
                throw new IllegalStateException("the Python process of the embedded cluster exited; see its log");
            }
            JsonNode answer = JSON.readTree(line);
            answer.path("rejected").properties().forEach(
                setting -> Notes.rejected(setting.getKey(), setting.getValue().asText()));
            if (answer.has("error")) {
                throw new IllegalStateException(answer.get("error").asText());
            }
            return answer;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void startPython() throws IOException {
        ProcessBuilder builder = new ProcessBuilder(System.getProperty("kafkacore.python"), "-m", "kafka_suite.nodes");
        builder.redirectError(ProcessBuilder.Redirect.appendTo(new File(System.getProperty("kafkacore.log"))));
        python = builder.start();
        requests = python.outputWriter(StandardCharsets.UTF_8);
        answers = python.inputReader(StandardCharsets.UTF_8);
    }
}
