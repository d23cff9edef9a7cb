package org.apache.kafka.common.test;

import java.util.HashMap;
import java.util.Map;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafkacore.suite.EmbeddedNodes;
import kafkacore.suite.NeedsKafkaObjects;
import kafkacore.suite.StandIns;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Takes the place of Kafka's class of this name, with which the tests of Kafka Streams ({@code EmbeddedKafkaCluster}) and a few
 * others start a cluster.
 */
public final class KafkaClusterTestKit implements AutoCloseable {
    private final TestKitNodes nodes;
    private final Map<String, Object> properties;
    private final MockFaultHandler fatalFaultHandler = new MockFaultHandler("fatalFaultHandler");
    private final MockFaultHandler nonFatalFaultHandler = new MockFaultHandler("nonFatalFaultHandler");
    private EmbeddedNodes embedded;

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, Object> properties) {
        this.nodes = nodes;
        this.properties = properties;
    }

    /** Collects the configuration of a cluster. */
    public static final class Builder {
        private final TestKitNodes nodes;
        private final Map<String, Object> properties = new HashMap<>();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            properties.put(key, value);
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> voters) {
            throw NeedsKafkaObjects.by("KafkaClusterTestKit.Builder.setInitialVoterSet");
        }

        public Builder setDeleteOnClose(boolean deleteOnClose) {
            return this;
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(nodes, properties);
        }
    }

    public void format() {
        // An embedded cluster creates its folder at the start.
    }

    public void startup() {
        Map<String, Object> given = new HashMap<>(properties);
        String listener = nodes.brokerListenerName().value();
        given.putIfAbsent("listeners", listener + "://localhost:0");
        given.putIfAbsent("listener.security.protocol.map", listener + ":" + nodes.brokerListenerProtocol().name);
        Map<Integer, Map<String, String>> ofNodes = new HashMap<>();
        nodes.brokerNodes().forEach((id, node) -> ofNodes.put(id, node.propertyOverrides()));
        embedded = new EmbeddedNodes(nodes.brokerNodes().size(), given, ofNodes);
    }

    public void waitForReadyBrokers() {
        // The nodes are ready when their start returns.
    }

    public String bootstrapServers() {
        return embedded.bootstrapServers();
    }

    public Admin admin() {
        return admin(Map.of());
    }

    public Admin admin(Map<String, Object> configs) {
        Map<String, Object> given = new HashMap<>(configs);
        given.putIfAbsent(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers());
        return Admin.create(given);
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatalFaultHandler;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatalFaultHandler;
    }

    public Map<Integer, BrokerServer> brokers() {
        return StandIns.brokers(embedded);
    }

    public Map<Integer, ControllerServer> controllers() {
        return Map.of(StandIns.CONTROLLER_ID, StandIns.controller(embedded));
    }

    @Override
    public void close() {
        if (embedded != null) {
            embedded.close();
        }
    }

    // ---- What needs Apache Kafka in this JVM -------------------------------------------------------------------------------

    public Admin admin(Map<String, Object> configs, boolean usingBootstrapControllers) {
        if (usingBootstrapControllers) {
            throw NeedsKafkaObjects.by("KafkaClusterTestKit.admin of the controllers");
        }
        return admin(configs);
    }

    public String bootstrapControllers() {
        throw NeedsKafkaObjects.by("KafkaClusterTestKit.bootstrapControllers");
    }

    public Controller waitForActiveController() {
        throw NeedsKafkaObjects.by("KafkaClusterTestKit.waitForActiveController");
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        throw NeedsKafkaObjects.by("KafkaClusterTestKit.raftManagers");
    }
}
