package kafkacore.suite;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.security.CredentialProvider;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.AclDeleteResult.AclBindingDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.apache.kafka.server.metrics.KafkaMetricsGroup;
import scala.Option;

/** Stand-ins for what a broker of Apache Kafka knows about users, access control entries and authentications. */
final class SecurityStandIns {
    private static final String EXPIRED = "expired-connections-killed-count";
    private static final KafkaMetricsGroup SOCKET_SERVER = new KafkaMetricsGroup("kafka.network", "SocketServer");

    private SecurityStandIns() {
    }

    /** Return the authorizer of a cluster, if its configuration has one. */
    static Option<Plugin<Authorizer>> authorizer(EmbeddedNodes nodes) {
        Object name = nodes.properties(nodes.nodeIds().iterator().next()).get("authorizer.class.name");
        return name == null || name.toString().isEmpty() ? Option.empty()
            : Option.apply(Plugin.wrapInstance(new Acls(nodes), null, "authorizer.class.name"));
    }

    /** Return the SCRAM credentials at this time: which users have one, without the keys. */
    static CredentialProvider credentials(EmbeddedNodes nodes) {
        CredentialProvider provider = new CredentialProvider(
            List.of("SCRAM-SHA-256", "SCRAM-SHA-512"), new DelegationTokenCache(List.of()));
        byte[] none = {};
        nodes.scramUsers().forEach((mechanism, users) -> users.forEach(user -> provider.updateCredential(
            ScramMechanism.fromMechanismName(mechanism), user, new ScramCredential(none, none, none, 4096))));
        return provider;
    }

    /** Return the metrics of authentications and throttle times. They count those of all nodes. */
    static Metrics metrics(EmbeddedNodes nodes) {
        Metrics metrics = nodes.metrics();
        for (String name : nodes.authentications().keySet()) {
            MetricName metric = metrics.metricName(name, "socket-server-metrics", "Counts all nodes.");
            if (metrics.metric(metric) == null) {
                metrics.addMetric(metric, (Gauge<Double>) (config, now) -> nodes.authentications().get(name));
            }
        }
        QuotaStandIns.addTo(metrics, nodes);
        return metrics;
    }

    /** Register the gauge with which a broker of Kafka shows how many connections it has closed because they expired. */
    static void registerGauge(EmbeddedNodes nodes) {
        SOCKET_SERVER.removeMetric("ExpiredConnectionsKilledCount");
        SOCKET_SERVER.newGauge("ExpiredConnectionsKilledCount", () -> nodes.authentications().get(EXPIRED));
    }

    static void removeGauge() {
        SOCKET_SERVER.removeMetric("ExpiredConnectionsKilledCount");
    }

    /** The access control entries of a cluster. It does not authorize. */
    static final class Acls implements Authorizer {
        private final EmbeddedNodes nodes;

        Acls(EmbeddedNodes nodes) {
            this.nodes = nodes;
        }

        @Override
        public Iterable<AclBinding> acls(AclBindingFilter filter) {
            return nodes.acls().stream().filter(filter::matches).toList();
        }

        @Override
        public List<? extends CompletionStage<AclCreateResult>> createAcls(
                AuthorizableRequestContext context, List<AclBinding> acls) {
            nodes.addAcls(acls);
            return acls.stream().map(acl -> CompletableFuture.completedFuture(AclCreateResult.SUCCESS)).toList();
        }

        @Override
        public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(
                AuthorizableRequestContext context, List<AclBindingFilter> filters) {
            List<CompletableFuture<AclDeleteResult>> results = new ArrayList<>();
            for (AclBindingFilter filter : filters) {
                List<AclBinding> matching = nodes.acls().stream().filter(filter::matches).toList();
                nodes.removeAcls(matching);
                results.add(CompletableFuture.completedFuture(
                    new AclDeleteResult(matching.stream().map(AclBindingDeleteResult::new).toList())));
            }
            return results;
        }

        @Override
        public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
            throw NeedsKafkaObjects.by("Authorizer.authorize");
        }

        @Override
        public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo info) {
            throw NeedsKafkaObjects.by("Authorizer.start");
        }

        @Override
        public void configure(Map<String, ?> configs) {
            // It has no settings.
        }

        @Override
        public void close() {
            // The cluster closes itself.
        }
    }
}
