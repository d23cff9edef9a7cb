package kafka.server;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import kafka.utils.Logging;
import kafka.utils.TestInfoUtils;
import kafkacore.suite.EmbeddedNodes;
import kafkacore.suite.Features;
import kafkacore.suite.NeedsKafkaObjects;
import kafkacore.suite.StandIns;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.TransactionVersion;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.params.provider.Arguments;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes the place of Kafka's class of this name, the base class of the tests in Scala. A subclass asks it for one broker after
 * another; they are the nodes of one embedded cluster. If the subclass has no list of its brokers, the cluster starts when the
 * test first uses one of them.
 */
@Tag("integration")
public abstract class QuorumTestHarness implements Logging {
    private static final Pattern SCRAM_USER = Pattern.compile("SCRAM-SHA-\\d+=\\[name=([^,]+),password=([^,]+)]");

    private String logIdent = "";
    private TestInfo testInfo;
    /** Configurations of the brokers that the test has created before the cluster started, by id. */
    private final Map<Integer, KafkaConfig> announced = new TreeMap<>();
    private EmbeddedNodes nodes;

    // ---- What the tests override -----------------------------------------------------------------------------------------

    public SecurityProtocol controllerListenerSecurityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    public scala.collection.Seq<Properties> kraftControllerConfigs(TestInfo info) {
        return seq(List.of(new Properties()));
    }

    public MetadataVersion metadataVersion() {
        return MetadataVersion.latestTesting();
    }

    public void addFormatterSettings(Formatter formatter) {
        // The embedded cluster has no formatter.
    }

    public scala.collection.Seq<SecurityProtocol> extraControllerSecurityProtocols() {
        return seq(List.of());
    }

    private static <T> Seq<T> seq(List<T> list) {
        return CollectionConverters.asScala(list).toSeq();
    }

    // ---- Before and after a test -------------------------------------------------------------------------------------------

    @BeforeEach
    public void setUp(TestInfo info) {
        testInfo = info;
    }

    @AfterEach
    public void tearDown() {
        if (nodes != null) {
            nodes.close();
            nodes = null;
        }
        announced.clear();
    }

    public Option<GroupProtocol> maybeGroupProtocolSpecified() {
        return TestInfoUtils.maybeGroupProtocolSpecified(testInfo);
    }

    public GroupProtocol groupProtocolFromTestParameters() {
        return maybeGroupProtocolSpecified().get();
    }

    // ---- The cluster -----------------------------------------------------------------------------------------------------------

    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
        if (time != Time.SYSTEM) {
            throw NeedsKafkaObjects.by("a broker with a clock of the test");
        }
        if (nodes == null) {
            configs().forEach(each -> announced.put(each.nodeId(), each));
            boolean isListed = announced.containsKey(config.nodeId());
            announced.put(config.nodeId(), config);
            if (!isListed) {
                return StandIns.broker(this::running, config.nodeId(), config);
            }
        }
        if (!running().nodeIds().contains(config.nodeId())) {
            throw NeedsKafkaObjects.by("a broker that is added to a running cluster");
        }
        KafkaBroker broker = StandIns.broker(nodes, config.nodeId(), config);
        if (startup) {
            broker.startup();
        }
        return broker;
    }

    private synchronized EmbeddedNodes running() {
        if (nodes == null) {
            nodes = started(List.copyOf(announced.values()));
        }
        return nodes;
    }

    public Time createBroker$default$2() {
        return Time.SYSTEM;
    }

    public boolean createBroker$default$3() {
        return true;
    }

    public Option<String> createBroker$default$4() {
        return Option.empty();
    }

    /** Return the configurations of all brokers, which the subclass {@code KafkaServerTestHarness} has. Others have none. */
    private List<KafkaConfig> configs() {
        try {
            scala.collection.Seq<?> found = (scala.collection.Seq<?>) getClass().getMethod("configs").invoke(this);
            return CollectionConverters.asJava(found).stream().map(KafkaConfig.class::cast).toList();
        } catch (NoSuchMethodException error) {
            return List.of();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("the list of all brokers is not available", error);
        }
    }

    private EmbeddedNodes started(List<KafkaConfig> configs) {
        Map<Integer, Map<String, Object>> ofNodes = new HashMap<>();
        configs.forEach(config -> ofNodes.put(config.nodeId(), config.originals()));
        EmbeddedNodes cluster = new EmbeddedNodes(configs.get(0).nodeId(), configs.size(), formatted(), ofNodes);
        TransactionVersion version =
            TestInfoUtils.isTransactionV2Enabled(testInfo) ? TransactionVersion.TV_2 : TransactionVersion.TV_1;
        if (configs.get(0).effectiveAdvertisedBrokerListeners().forall(each -> each.securityProtocol() == SecurityProtocol.PLAINTEXT)) {
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", cluster.bootstrapServers()))) {
                Features.set(admin, Map.of(TransactionVersion.FEATURE_NAME, version.featureLevel()));
            }
        }
        return cluster;
    }

    /** Return the users that the test adds when it formats the folders of Kafka's brokers. */
    private Map<String, String> formatted() {
        Formatter formatter = new Formatter();
        addFormatterSettings(formatter);
        Map<String, String> users = new HashMap<>();
        try {
            Field arguments = Formatter.class.getDeclaredField("scramArguments");
            arguments.setAccessible(true);
            for (Object each : (List<?>) arguments.get(formatter)) {
                Matcher user = SCRAM_USER.matcher(each.toString());
                if (!user.matches()) {
                    throw new IllegalArgumentException("not a SCRAM user: " + each);
                }
                users.put("sasl.user." + user.group(1), user.group(2));
            }
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
        return users;
    }

    public ControllerServer controllerServer() {
        return StandIns.controller(this::running);
    }

    public scala.collection.Seq<ControllerServer> controllerServers() {
        return announced.isEmpty() ? seq(List.of()) : seq(List.of(controllerServer()));
    }

    public void shutdownKRaftController() {
        throw NeedsKafkaObjects.by("QuorumTestHarness.shutdownKRaftController");
    }

    public QuorumImplementation implementation() {
        throw NeedsKafkaObjects.by("QuorumTestHarness.implementation");
    }

    // ---- Parameters of tests -----------------------------------------------------------------------------------------------

    public static Stream<Arguments> getTestGroupProtocolParametersAll() {
        return Stream.of(Arguments.of("classic"), Arguments.of("consumer"));
    }

    public static Stream<Arguments> getTestGroupProtocolParametersClassicGroupProtocolOnly() {
        return Stream.of(Arguments.of("classic"));
    }

    public static Stream<Arguments> getTestGroupProtocolParametersConsumerGroupProtocolOnly() {
        return Stream.of(Arguments.of("consumer"));
    }

    // ---- Logging ---------------------------------------------------------------------------------------------------------------

    @Override
    public String logIdent() {
        return logIdent;
    }

    @Override
    public void logIdent_$eq(String ident) {
        logIdent = ident;
    }
}
