package org.apache.kafka.common.test.junit;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafkacore.suite.EmbeddedNodes;
import kafkacore.suite.Features;
import kafkacore.suite.NeedsKafkaObjects;
import kafkacore.suite.StandIns;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.internals.BrokerSecurityConfigs;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.config.ServerConfigs;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.opentest4j.TestAbortedException;

/**
 * Takes the place of Kafka's class of this name, which {@code ClusterTestExtensions} creates for each invocation of a test. It
 * gives the test an embedded cluster.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String baseDisplayName;
    private final ClusterConfig config;
    private final boolean isCombined;

    public RaftClusterInvocationContext(String baseDisplayName, ClusterConfig config, boolean isCombined) {
        this.baseDisplayName = baseDisplayName;
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public String getDisplayName(int index) {
        return baseDisplayName + " [" + index + "] " + String.join(",", config.displayTags());
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        EmbeddedClusterInstance cluster = new EmbeddedClusterInstance(config, isCombined);
        return List.of(
            (BeforeEachCallback) context -> {
                if (isCombined && config.clusterTypes().contains(Type.KRAFT)) {
                    throw new TestAbortedException("an embedded cluster has no controllers: it runs once, as KRAFT");
                }
                if (config.isAutoStart()) {
                    cluster.start();
                }
            },
            (AfterTestExecutionCallback) context -> cluster.stop(),
            new ClusterInstanceParameterResolver(cluster)
        );
    }

    private static final class EmbeddedClusterInstance implements ClusterInstance {
        private static final long WAIT_MS = 60_000;

        private final ClusterConfig config;
        private final boolean isCombined;
        private EmbeddedNodes nodes;
        private boolean isStopped;

        EmbeddedClusterInstance(ClusterConfig config, boolean isCombined) {
            this.config = config;
            this.isCombined = isCombined;
        }

        // ---- Start and stop --------------------------------------------------------------------------------------------

        @Override
        public void start() {
            if (nodes == null) {
                nodes = new EmbeddedNodes(config.numBrokers(), properties(), config.perServerOverrideProperties());
                setFeatures();
            }
        }

        private void setFeatures() {
            Map<String, Short> levels = new HashMap<>();
            config.features().forEach((feature, level) -> levels.put(feature.featureName(), level));
            if (!levels.isEmpty()) {
                try (Admin admin = admin()) {
                    Features.set(admin, levels);
                }
            }
        }

        /** Return the broker's properties, with those that Kafka's {@code KafkaClusterTestKit} adds. */
        private Map<String, Object> properties() {
            Map<String, Object> properties = new HashMap<>(config.serverProperties());
            SecurityProtocol protocol = config.brokerSecurityProtocol();
            String listener = config.brokerListenerName().value();
            properties.putIfAbsent("listeners", listener + "://localhost:0");
            properties.putIfAbsent("listener.security.protocol.map", listener + ":" + protocol.name);
            if (protocol == SecurityProtocol.SASL_PLAINTEXT) {
                properties.putIfAbsent(BrokerSecurityConfigs.SASL_ENABLED_MECHANISMS_CONFIG, "PLAIN");
                properties.putIfAbsent(ServerConfigs.AUTHORIZER_CLASS_NAME_CONFIG, StandardAuthorizer.class.getName());
                properties.putIfAbsent(StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, "false");
                properties.putIfAbsent(StandardAuthorizer.SUPER_USERS_CONFIG, "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
                properties.put("sasl.user." + JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD);
                properties.put("sasl.user." + JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD);
            }
            return properties;
        }

        @Override
        public boolean started() {
            return nodes != null;
        }

        @Override
        public void stop() {
            if (nodes != null && !isStopped) {
                isStopped = true;
                nodes.close();
            }
        }

        @Override
        public boolean stopped() {
            return isStopped;
        }

        @Override
        public void shutdownBroker(int brokerId) {
            nodes.stop(checked(brokerId));
        }

        @Override
        public void startBroker(int brokerId) {
            nodes.start(checked(brokerId));
        }

        private int checked(int brokerId) {
            if (!nodes.nodeIds().contains(brokerId)) {
                throw new IllegalArgumentException("Unknown brokerId " + brokerId);
            }
            return brokerId;
        }

        @Override
        public void waitForReadyBrokers() {
            // The nodes are ready when their start returns.
        }

        // ---- What is known without a request ---------------------------------------------------------------------------

        @Override
        public Type type() {
            return isCombined ? Type.CO_KRAFT : Type.KRAFT;
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public String bootstrapServers() {
            return nodes.bootstrapServers();
        }

        @Override
        public String clusterId() {
            return nodes.clusterId();
        }

        @Override
        public ListenerName clientListener() {
            return config.brokerListenerName();
        }

        @Override
        public Set<Integer> brokerIds() {
            return nodes.nodeIds();
        }

        @Override
        public List<Integer> brokerBoundPorts() {
            return nodes.nodeIds().stream().map(nodes::port).toList();
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            return new TreeMap<>(StandIns.brokers(nodes));
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            return Map.of(StandIns.CONTROLLER_ID, StandIns.controller(nodes));
        }

        @Override
        public Set<Integer> controllerIds() {
            return Set.of(StandIns.CONTROLLER_ID);
        }

        // ---- Waiting ---------------------------------------------------------------------------------------------------

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            if (partitions <= 0) {
                throw new IllegalArgumentException("Partition count must be > 0, but was " + partitions);
            }
            TestUtils.waitForCondition(() -> nodes.topic(topic).filter(each -> each.partitions().size() == partitions).isPresent(),
                WAIT_MS, topic + " does not have " + partitions + " partitions after " + WAIT_MS + " ms");
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            TestUtils.waitForCondition(() -> nodes.topic(topic).isEmpty(),
                WAIT_MS, topic + " still exists after " + WAIT_MS + " ms");
        }

        @Override
        public void ensureConsistentMetadata() {
            // All nodes share one state.
        }

        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) {
            // All nodes share one state.
        }

        @Override
        public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries)
                throws InterruptedException {
            TestUtils.waitForCondition(() -> {
                Set<AccessControlEntry> found = nodes.acls().stream().filter(filter::matches)
                    .map(AclBinding::entry).collect(Collectors.toSet());
                return found.containsAll(entries) && entries.containsAll(found);
            }, WAIT_MS, "the ACLs are not " + entries + " after " + WAIT_MS + " ms");
        }

        @Override
        public List<Authorizer> authorizers() {
            return StandIns.authorizers(nodes);
        }

        // ---- What needs Apache Kafka in this JVM -----------------------------------------------------------------------

        @Override
        public ListenerName controllerListenerName() {
            throw NeedsKafkaObjects.by("ClusterInstance.controllerListenerName");
        }

        @Override
        public String bootstrapControllers() {
            throw NeedsKafkaObjects.by("ClusterInstance.bootstrapControllers");
        }

        @Override
        public List<Integer> controllerBoundPorts() {
            throw NeedsKafkaObjects.by("ClusterInstance.controllerBoundPorts");
        }

    }
}
