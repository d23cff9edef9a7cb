package kafkacore.suite;

import static org.mockito.Mockito.withSettings;

import java.io.File;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.coordinator.group.Group;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.BrokerLifecycleManager;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.GroupVersion;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.MockMakers;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import scala.Option;

/**
 * Stand-ins for the objects of Apache Kafka's brokers and controllers. They answer what most tests ask while they prepare: whether
 * a broker runs, its port and configuration, and which partitions exist and who leads them. The answers are the state of the
 * embedded cluster. Every other method throws {@link NeedsKafkaObjects}.
 */
public final class StandIns {
    /** What Kafka's test kit uses as the id of its first controller. */
    public static final int CONTROLLER_ID = 3000;
    private static final long CLEANER_POLL_MS = 100;

    private StandIns() {
    }

    /** Answers the calls of some methods, by name. */
    interface Answers {
        Object to(String method, Object[] arguments) throws Exception;
    }

    // ---- Brokers ---------------------------------------------------------------------------------------------------------

    /** Return a broker for each node. */
    public static Map<Integer, BrokerServer> brokers(EmbeddedNodes nodes) {
        Map<Integer, BrokerServer> brokers = new TreeMap<>();
        nodes.nodeIds().forEach(node -> brokers.put(node, broker(nodes, node, config(nodes, node))));
        return brokers;
    }

    /** Return a broker that is one node of a cluster, which starts when the test first uses the broker. */
    public static BrokerServer broker(Supplier<EmbeddedNodes> nodes, int node, KafkaConfig config) {
        return object(BrokerServer.class, (method, arguments) ->
            method.equals("config") ? config : ofBroker(nodes.get(), node, config, method, arguments));
    }

    /** Return a broker that is one node of the cluster. */
    public static BrokerServer broker(EmbeddedNodes nodes, int node, KafkaConfig config) {
        return broker(() -> nodes, node, config);
    }

    private static Object ofBroker(EmbeddedNodes nodes, int node, KafkaConfig config, String method, Object[] arguments) {
        return switch (method) {
            case "shutdown" -> stop(nodes, node);
            case "startup" -> start(nodes, node);
            case "awaitShutdown" -> null;
            case "isShutdown" -> !nodes.runningNodes().contains(node);
            // A broker of Kafka that has been shut down keeps this state.
            case "brokerState" ->
                nodes.runningNodes().contains(node) ? BrokerState.RUNNING : BrokerState.SHUTTING_DOWN;
            case "clusterId" -> nodes.clusterId();
            case "boundPort" -> port(nodes, node, (ListenerName) arguments[0]);
            case "socketServer" -> socketServer(nodes, node);
            case "metadataCache" -> metadataCache(nodes);
            case "dataPlaneRequestProcessor" -> requestProcessor(nodes, config);
            case "replicaManager" -> replicaManager(nodes, node);
            case "logManager" -> logManager(nodes, node);
            case "groupCoordinator" -> groupCoordinator(config);
            case "sharedServer" -> sharedServer();
            case "lifecycleManager" -> lifecycleManager();
            case "authorizerPlugin" -> SecurityStandIns.authorizer(nodes);
            case "credentialProvider" -> SecurityStandIns.credentials(nodes);
            case "metrics" -> SecurityStandIns.metrics(nodes);
            default -> throw NeedsKafkaObjects.by("KafkaBroker." + method);
        };
    }

    private static int port(EmbeddedNodes nodes, int node, ListenerName listener) {
        Integer port = nodes.ports(node).get(listener.value().toUpperCase(Locale.ROOT));
        if (port == null) {
            throw new KafkaException("node " + node + " has no listener " + listener.value());
        }
        return port;
    }

    private static BrokerLifecycleManager lifecycleManager() {
        return object(BrokerLifecycleManager.class, (method, arguments) -> {
            if (!method.equals("initialUnfenceFuture")) {
                throw NeedsKafkaObjects.by("BrokerLifecycleManager." + method);
            }
            // The nodes serve clients when their start returns.
            return CompletableFuture.completedFuture(null);
        });
    }

    private static Object stop(EmbeddedNodes nodes, int node) {
        nodes.stop(node);
        return null;
    }

    private static Object start(EmbeddedNodes nodes, int node) {
        nodes.start(node);
        return null;
    }

    private static KafkaConfig config(EmbeddedNodes nodes, int node) {
        Map<String, Object> properties = new HashMap<>(nodes.properties(node));
        properties.put("node.id", String.valueOf(node));
        properties.put("process.roles", "broker");
        properties.putIfAbsent("controller.listener.names", "CONTROLLER");
        properties.putIfAbsent("controller.quorum.bootstrap.servers", "localhost:9093");
        properties.computeIfPresent("listener.security.protocol.map", (name, map) -> map + ",CONTROLLER:PLAINTEXT");
        properties.computeIfPresent("listeners", (name, listeners) -> withPorts(listeners.toString(), nodes.ports(node)));
        properties.putIfAbsent("inter.broker.listener.name", listener(properties));
        return new KafkaConfig(properties, false);
    }

    /** Replace port 0 of each listener by the port that it is bound to. */
    private static String withPorts(String listeners, Map<String, Integer> ports) {
        return Stream.of(listeners.split(",")).map(String::trim)
            .map(each -> each.replaceFirst(":0$", ":" + ports.get(each.split("://")[0].toUpperCase(Locale.ROOT))))
            .collect(Collectors.joining(","));
    }

    private static String listener(Map<String, Object> properties) {
        return properties.getOrDefault("listeners", "PLAINTEXT://").toString().split("://")[0];
    }

    private static SocketServer socketServer(EmbeddedNodes nodes, int node) {
        return object(SocketServer.class, (method, arguments) -> switch (method) {
            case "boundPort" -> port(nodes, node, (ListenerName) arguments[0]);
            default -> throw NeedsKafkaObjects.by("SocketServer." + method);
        });
    }

    private static GroupCoordinator groupCoordinator(KafkaConfig config) {
        return implementation(GroupCoordinator.class, (method, arguments) -> {
            if (!method.equals("groupMetadataTopicConfigs")) {
                throw NeedsKafkaObjects.by("GroupCoordinator." + method);
            }
            Properties properties = new Properties();
            properties.put("cleanup.policy", "compact");
            properties.put("compression.type", "producer");
            properties.put("segment.bytes", String.valueOf(config.groupCoordinatorConfig().offsetsTopicSegmentBytes()));
            return properties;
        });
    }

    private static SharedServer sharedServer() {
        return object(SharedServer.class, (method, arguments) -> {
            if (!method.equals("loader")) {
                throw NeedsKafkaObjects.by("SharedServer." + method);
            }
            // Tests wait until the loader, if there is one, has applied all metadata. All nodes share one state here.
            return null;
        });
    }

    // ---- Topics and partitions -------------------------------------------------------------------------------------------

    private static KafkaApis requestProcessor(EmbeddedNodes nodes, KafkaConfig config) {
        return object(KafkaApis.class, (method, arguments) -> switch (method) {
            case "metadataCache" -> metadataCache(nodes);
            case "authorizerPlugin" -> SecurityStandIns.authorizer(nodes);
            case "clusterId" -> nodes.clusterId();
            case "quotas" -> QuotaStandIns.managers(nodes);
            case "isConsumerGroupProtocolEnabled" ->
                config.groupCoordinatorRebalanceProtocols().contains(Group.GroupType.CONSUMER)
                    && nodes.featureLevel(GroupVersion.FEATURE_NAME) >= GroupVersion.GV_1.featureLevel();
            default -> throw NeedsKafkaObjects.by("KafkaApis." + method);
        });
    }

    private static KRaftMetadataCache metadataCache(EmbeddedNodes nodes) {
        return object(KRaftMetadataCache.class, (method, arguments) -> switch (method) {
            case "numPartitions" -> nodes.topic((String) arguments[0]).map(topic -> topic.partitions().size());
            case "getLeaderAndIsr" -> partition(nodes, new TopicPartition((String) arguments[0], (Integer) arguments[1]))
                .map(each -> new LeaderAndIsr(each.leader(), each.epoch(), each.inSync(), LeaderRecoveryState.RECOVERED, 0));
            case "hasAliveBroker" -> nodes.runningNodes().contains(arguments[0]);
            case "getAliveBrokerNode" -> nodes.runningNodes().contains(arguments[0])
                ? Optional.of(new Node((Integer) arguments[0], nodes.host(),
                    port(nodes, (Integer) arguments[0], (ListenerName) arguments[1])))
                : Optional.empty();
            case "getPartitionLeaderEndpoint" -> leader(nodes, arguments);
            case "getAllTopics" -> nodes.topicNames();
            case "getTopicId" -> nodes.topic((String) arguments[0]).map(EmbeddedNodes.Topic::id).orElse(Uuid.ZERO_UUID);
            case "contains" -> arguments[0] instanceof TopicPartition partition
                ? partition(nodes, partition).isPresent() : nodes.topic((String) arguments[0]).isPresent();
            default -> throw NeedsKafkaObjects.by("MetadataCache." + method);
        });
    }

    /** Return the leader of a partition with its address on a listener, if the partition exists. */
    private static Optional<Node> leader(EmbeddedNodes nodes, Object[] arguments) {
        return partition(nodes, new TopicPartition((String) arguments[0], (Integer) arguments[1])).map(each ->
            nodes.runningNodes().contains(each.leader())
                ? new Node(each.leader(), nodes.host(), port(nodes, each.leader(), (ListenerName) arguments[2]))
                : Node.noNode());
    }

    private static Optional<EmbeddedNodes.Replicas> partition(EmbeddedNodes nodes, TopicPartition partition) {
        return nodes.topic(partition.topic()).filter(topic -> partition.partition() < topic.partitions().size())
            .map(topic -> topic.partitions().get(partition.partition()));
    }

    private static ReplicaManager replicaManager(EmbeddedNodes nodes, int node) {
        return object(ReplicaManager.class, (method, arguments) -> switch (method) {
            case "onlinePartition" -> hosted(nodes, node, (TopicPartition) arguments[0])
                .filter(each -> nodes.runningNodes().contains(node)).map(each -> partition(nodes, (TopicPartition) arguments[0], each))
                .map(Option::apply).orElse(Option.empty());
            case "localLog", "getLog" -> log(nodes, node, (TopicPartition) arguments[0]);
            case "logManager" -> logManager(nodes, node);
            default -> throw NeedsKafkaObjects.by("ReplicaManager." + method);
        });
    }

    private static LogManager logManager(EmbeddedNodes nodes, int node) {
        return object(LogManager.class, (method, arguments) -> switch (method) {
            case "getLog" -> log(nodes, node, (TopicPartition) arguments[0]);
            case "getLog$default$2" -> false;
            case "producerStateManagerConfig" -> producerConfig(nodes);
            case "cleaner" -> cleaner(nodes);
            default -> throw NeedsKafkaObjects.by("LogManager." + method);
        });
    }

    private static LogCleaner cleaner(EmbeddedNodes nodes) {
        return object(LogCleaner.class, (method, arguments) -> switch (method) {
            case "awaitCleaned" -> isCleaned(nodes, (TopicPartition) arguments[0], (Long) arguments[1], (Long) arguments[2]);
            default -> throw NeedsKafkaObjects.by("LogCleaner." + method);
        });
    }

    /** Wait until a partition has been compacted up to an offset. Return whether it has. */
    private static boolean isCleaned(EmbeddedNodes nodes, TopicPartition partition, long offset, long waitMs)
            throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
        while (nodes.compactedTo(partition) < offset) {
            if (System.nanoTime() > deadline) {
                return false;
            }
            Thread.sleep(CLEANER_POLL_MS);
        }
        return true;
    }

    private static ProducerStateManagerConfig producerConfig(EmbeddedNodes nodes) {
        return object(ProducerStateManagerConfig.class, (method, arguments) -> switch (method) {
            case "producerIdExpirationMs" -> nodes.setting("producer_id_expiration_ms");
            default -> throw NeedsKafkaObjects.by("ProducerStateManagerConfig." + method);
        });
    }

    /** A replica on a node. */
    private record Hosted(EmbeddedNodes.Replicas replicas, boolean isLeader) {
    }

    private static Optional<Hosted> hosted(EmbeddedNodes nodes, int node, TopicPartition partition) {
        return partition(nodes, partition).filter(each -> each.nodes().contains(node))
            .map(each -> new Hosted(each, each.leader() == node));
    }

    private static Partition partition(EmbeddedNodes nodes, TopicPartition partition, Hosted hosted) {
        return object(Partition.class, (method, arguments) -> switch (method) {
            case "isLeader" -> hosted.isLeader();
            case "getLeaderEpoch" -> hosted.replicas().epoch();
            case "leaderIdIfLocal" ->
                hosted.isLeader() ? Option.apply(hosted.replicas().leader()) : Option.empty();
            case "leaderReplicaIdOpt" -> Option.apply(hosted.replicas().leader());
            case "leaderLogIfLocal" -> hosted.isLeader() ? Option.apply(log(nodes, partition, hosted.replicas())) : Option.empty();
            case "log" -> Option.apply(log(nodes, partition, hosted.replicas()));
            default -> throw NeedsKafkaObjects.by("Partition." + method);
        });
    }

    private static Option<UnifiedLog> log(EmbeddedNodes nodes, int node, TopicPartition partition) {
        return hosted(nodes, node, partition).map(each -> Option.apply(log(nodes, partition, each.replicas())))
            .orElse(Option.empty());
    }

    private static UnifiedLog log(EmbeddedNodes nodes, TopicPartition partition, EmbeddedNodes.Replicas replicas) {
        return object(UnifiedLog.class, (method, arguments) -> switch (method) {
            case "dir" -> new File(replicas.folder());
            case "logStartOffset" -> replicas.start();
            case "highWatermark" -> replicas.highWatermark();
            case "logEndOffset" -> replicas.end();
            case "producerStateManager" -> producers(replicas);
            case "roll" -> roll(nodes, partition);
            default -> throw NeedsKafkaObjects.by("UnifiedLog." + method);
        });
    }

    /** Start a new segment. Tests that need the new segment object fail, because there is none. */
    private static Object roll(EmbeddedNodes nodes, TopicPartition partition) {
        nodes.roll(partition);
        return null;
    }

    private static ProducerStateManager producers(EmbeddedNodes.Replicas replicas) {
        return object(ProducerStateManager.class, (method, arguments) -> {
            if (!method.equals("activeProducers")) {
                throw NeedsKafkaObjects.by("ProducerStateManager." + method);
            }
            Map<Long, ProducerStateEntry> found = new HashMap<>();
            replicas.producers().forEach(each -> found.put(each.producerId(), each));
            return found;
        });
    }

    /** Return the authorizer of the cluster, if it has one. */
    public static List<Authorizer> authorizers(EmbeddedNodes nodes) {
        return SecurityStandIns.authorizer(nodes).map(Plugin::get).map(List::of).getOrElse(List::of);
    }

    // ---- The controller --------------------------------------------------------------------------------------------------

    /** Return a controller that knows the topics of the cluster. */
    public static ControllerServer controller(Supplier<EmbeddedNodes> nodes) {
        return object(ControllerServer.class, (method, arguments) -> switch (method) {
            case "clusterId" -> nodes.get().clusterId();
            case "config" -> controllerConfig();
            case "socketServer" -> controllerSocketServer(nodes.get());
            case "raftManager" -> raftManager();
            case "authorizerPlugin" -> SecurityStandIns.authorizer(nodes.get());
            case "controller" -> implementation(Controller.class, (name, given) -> topics(nodes.get(), name, given));
            default -> throw NeedsKafkaObjects.by("ControllerServer." + method);
        });
    }

    /** Return a controller that knows the topics of the cluster. */
    public static ControllerServer controller(EmbeddedNodes nodes) {
        return controller(() -> nodes);
    }

    /** Return a server at the address of the first node, which does the work of a controller. */
    private static SocketServer controllerSocketServer(EmbeddedNodes nodes) {
        return object(SocketServer.class, (method, arguments) -> switch (method) {
            case "boundPort" -> nodes.port(nodes.nodeIds().iterator().next());
            default -> throw NeedsKafkaObjects.by("SocketServer." + method);
        });
    }

    private static KafkaConfig controllerConfig() {
        return new KafkaConfig(Map.of("node.id", String.valueOf(CONTROLLER_ID), "process.roles", "controller",
            "controller.listener.names", "CONTROLLER", "listeners", "CONTROLLER://localhost:9093",
            "controller.quorum.bootstrap.servers", "localhost:9093"), false);
    }

    private static KafkaRaftManager<?> raftManager() {
        RaftLog log = implementation(RaftLog.class, (method, arguments) -> {
            if (!method.equals("endOffset")) {
                throw NeedsKafkaObjects.by("RaftLog." + method);
            }
            return new LogOffsetMetadata(0);
        });
        return object(KafkaRaftManager.class, (method, arguments) -> switch (method) {
            case "raftLog" -> log;
            default -> throw NeedsKafkaObjects.by("KafkaRaftManager." + method);
        });
    }

    private static Object topics(EmbeddedNodes nodes, String method, Object[] arguments) {
        switch (method) {
            case "isActive":
                return true;
            case "findAllTopicIds": {
                Map<String, Uuid> found = new HashMap<>();
                nodes.topicNames().forEach(name -> nodes.topic(name).ifPresent(topic -> found.put(name, topic.id())));
                return CompletableFuture.completedFuture(found);
            }
            case "findTopicIds": {
                Map<String, ResultOrError<Uuid>> found = new HashMap<>();
                for (Object name : (Iterable<?>) arguments[1]) {
                    nodes.topic(name.toString()).ifPresent(
                        topic -> found.put(name.toString(), new ResultOrError<>(topic.id())));
                }
                return CompletableFuture.completedFuture(found);
            }
            default:
                throw NeedsKafkaObjects.by("Controller." + method);
        }
    }

    // ---- Objects with answers ----------------------------------------------------------------------------------------------

    static <T> T object(Class<T> type, Answers answers) {
        return Mockito.mock(type, withSettings().mockMaker(MockMakers.SUBCLASS).stubOnly()
            .defaultAnswer((InvocationOnMock call) -> answered(answers, call.getMock(), call.getMethod().getName(),
                call.getArguments())));
    }

    private static <T> T implementation(Class<T> type, Answers answers) {
        return type.cast(Proxy.newProxyInstance(StandIns.class.getClassLoader(), new Class<?>[] {type},
            (proxy, method, arguments) -> answered(answers, proxy, method.getName(), arguments)));
    }

    private static Object answered(Answers answers, Object self, String method, Object[] arguments) throws Exception {
        return switch (method) {
            case "toString" -> "a stand-in for an object of Apache Kafka";
            case "hashCode" -> System.identityHashCode(self);
            case "equals" -> self == arguments[0];
            default -> answers.to(method, arguments);
        };
    }
}
