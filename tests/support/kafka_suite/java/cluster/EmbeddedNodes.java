package kafkacore.suite;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
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
    private final Metrics metrics = new Metrics();
    private final Map<Integer, Map<String, Integer>> ports = new TreeMap<>();

    /** Start nodes with the ids 0, 1, 2, … Properties are a broker's; those of single nodes override them. */
    public EmbeddedNodes(int nodes, Map<String, ?> properties, Map<Integer, ? extends Map<String, ?>> ofNodes) {
        this(0, nodes, properties, ofNodes);
    }

    /** Start nodes with consecutive ids. */
    public EmbeddedNodes(
            int first, int nodes, Map<String, ?> properties, Map<Integer, ? extends Map<String, ?>> ofNodes) {
        ObjectNode request = JSON.createObjectNode().put("do", "start").put("first", first).put("nodes", nodes);
        Map<String, Object> ofFirst = new HashMap<>(properties);
        if (ofNodes.get(first) != null) {
            ofFirst.putAll(ofNodes.get(first));
        }
        SecuritySettings security = new SecuritySettings(ofFirst);
        ObjectNode shared = request.putObject("properties");
        addTo(shared, properties, security);
        addTo(shared, security.translated());
        ObjectNode single = request.putObject("of_nodes");
        ofNodes.forEach((node, given) -> addTo(single.putObject(node.toString()), given, security));
        request.set("principals", JSON.valueToTree(security.principals()));
        request.put("krb5_conf", System.getProperty("java.security.krb5.conf"));
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
        SecurityStandIns.registerGauge(this);
        QuotaStandIns.registerHistograms(this);
    }

    private static void addTo(ObjectNode object, Map<String, ?> properties, SecuritySettings security) {
        Map<String, Object> rest = new HashMap<>(properties);
        rest.keySet().removeIf(security::isTranslated);
        addTo(object, rest);
    }

    private static void addTo(ObjectNode object, Map<String, ?> properties) {
        properties.forEach((name, value) -> object.put(name, text(value)));
    }

    private static String text(Object value) {
        if (value instanceof Collection<?> list) {
            return list.stream().map(String::valueOf).collect(Collectors.joining(","));
        }
        return value instanceof Password secret ? secret.value() : String.valueOf(value);
    }

    /** The replicas of a partition, with the leader or -1, and the state of its log, which all replicas share. */
    public record Replicas(
            int leader, int epoch, List<Integer> nodes, List<Integer> inSync, String folder, long start, long highWatermark, long end,
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

    /** Return the finalized level of a feature; 0 if it is disabled. */
    public int featureLevel(String feature) {
        return ask(request("feature").put("feature", feature)).get("level").asInt();
    }

    /** Start a new segment of a partition's log. */
    public void roll(TopicPartition partition) {
        ask(request("roll").put("topic", partition.topic()).put("partition", partition.partition()));
    }

    /** Return the offset up to which the partition has been compacted; -1 if it never was. */
    public long compactedTo(TopicPartition partition) {
        return ask(request("compacted_to").put("topic", partition.topic()).put("partition", partition.partition()))
            .get("offset").asLong();
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
            each.get("folder").asText(), each.get("start").asLong(), each.get("high_watermark").asLong(), each.get("end").asLong(),
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

    /** Return all access control entries. */
    public List<AclBinding> acls() {
        List<AclBinding> found = new ArrayList<>();
        ask(request("acls")).get("acls").forEach(each -> found.add(new AclBinding(
            new ResourcePattern(ResourceType.fromCode((byte) each.get(0).asInt()), each.get(1).asText(),
                PatternType.fromCode((byte) each.get(2).asInt())),
            new AccessControlEntry(each.get(3).asText(), each.get(4).asText(),
                AclOperation.fromCode((byte) each.get(5).asInt()), AclPermissionType.fromCode((byte) each.get(6).asInt())))));
        return found;
    }

    /** Add access control entries. Return when they are in effect. */
    public void addAcls(Collection<AclBinding> acls) {
        changeAcls("add_acls", acls);
    }

    /** Remove access control entries. Return when they are no longer in effect. */
    public void removeAcls(Collection<AclBinding> acls) {
        changeAcls("remove_acls", acls);
    }

    private void changeAcls(String what, Collection<AclBinding> acls) {
        ObjectNode request = request(what);
        ArrayNode list = request.putArray("acls");
        acls.forEach(each -> list.addArray()
            .add(each.pattern().resourceType().code()).add(each.pattern().name()).add(each.pattern().patternType().code())
            .add(each.entry().principal()).add(each.entry().host())
            .add(each.entry().operation().code()).add(each.entry().permissionType().code()));
        ask(request);
    }

    /** Return the users that have a SCRAM credential, by mechanism. */
    public Map<String, List<String>> scramUsers() {
        Map<String, List<String>> found = new HashMap<>();
        ask(request("scram_users")).get("users").properties().forEach(mechanism -> {
            List<String> names = found.computeIfAbsent(mechanism.getKey(), name -> new ArrayList<>());
            mechanism.getValue().forEach(name -> names.add(name.asText()));
        });
        return found;
    }

    /** Return how many authentications have succeeded or failed and how many connections have expired, by Kafka's metric names. */
    public Map<String, Double> authentications() {
        Map<String, Double> found = new HashMap<>();
        ask(request("authentications")).get("counts").properties().forEach(
            metric -> found.put(metric.getKey(), metric.getValue().asDouble()));
        return found;
    }

    /** The longest throttle time in milliseconds of the clients that share a quota; 0 if they were never throttled. */
    public record Throttled(String kind, String user, String clientId, double milliseconds) {
    }

    /** Return the throttle times of all clients. */
    public List<Throttled> throttled() {
        List<Throttled> found = new ArrayList<>();
        ask(request("throttling")).get("clients").forEach(each -> found.add(new Throttled(
            each.get(0).asText(), each.get(1).asText(), each.get(2).asText(), each.get(3).asDouble())));
        return found;
    }

    /** Return the longest throttle time of an API in milliseconds. */
    public double throttled(ApiKeys api) {
        return ask(request("throttling")).get("apis").path(api.name()).asDouble();
    }

    /** Return the limit of a client, by Kafka's name of the quota type, if it has one. */
    public OptionalDouble limit(String kind, String user, String clientId) {
        JsonNode limit =
            ask(request("limit").put("kind", kind).put("user", user).put("client_id", clientId)).get("limit");
        return limit.isNull() ? OptionalDouble.empty() : OptionalDouble.of(limit.asDouble());
    }

    /** Return the metrics of this cluster, which {@code SecurityStandIns} fills. */
    Metrics metrics() {
        return metrics;
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
        SecurityStandIns.removeGauge();
        QuotaStandIns.removeHistograms();
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
