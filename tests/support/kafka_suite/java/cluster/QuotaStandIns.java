package kafkacore.suite;

import com.yammer.metrics.core.Histogram;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricsRegistry;
import java.lang.reflect.Field;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.QuotaFactory.QuotaManagers;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.server.quota.ClientQuotaManager;

/** Stand-ins for the quotas of a broker of Apache Kafka, and for the metrics of throttle times. */
final class QuotaStandIns {
    /** The APIs that the tests look at, by the name in the metric. */
    private static final Map<String, ApiKeys> APIS = Map.of("Produce", ApiKeys.PRODUCE, "FetchConsumer", ApiKeys.FETCH);

    private QuotaStandIns() {
    }

    /** Return the limits of all clients. */
    static QuotaManagers managers(EmbeddedNodes nodes) {
        return new QuotaManagers(manager(ClientQuotaManager.class, nodes, "Fetch"),
            manager(ClientQuotaManager.class, nodes, "Produce"), manager(ClientRequestQuotaManager.class, nodes, "Request"),
            null, null, null, null, Optional.empty());
    }

    private static <T extends ClientQuotaManager> T manager(Class<T> type, EmbeddedNodes nodes, String kind) {
        return StandIns.object(type, (method, arguments) -> {
            if (!method.equals("quota")) {
                throw NeedsKafkaObjects.by("ClientQuotaManager." + method);
            }
            String user = arguments[0] instanceof KafkaPrincipal principal ? principal.getName() : arguments[0].toString();
            // Kafka's value for no limit.
            return Quota.upperBound(nodes.limit(kind, user, (String) arguments[1]).orElse(Long.MAX_VALUE));
        });
    }

    /** Add the throttle times of the clients that are not among the metrics yet. */
    static void addTo(Metrics metrics, EmbeddedNodes nodes) {
        for (EmbeddedNodes.Throttled each : nodes.throttled()) {
            Map<String, String> tags = Map.of("user", Sanitizer.sanitize(each.user()), "client-id", each.clientId());
            MetricName name = metrics.metricName("throttle-time", each.kind(), tags);
            if (metrics.metric(name) == null) {
                metrics.addMetric(name, (Gauge<Double>) (config, now) -> throttleTime(nodes, each));
            }
        }
    }

    private static double throttleTime(EmbeddedNodes nodes, EmbeddedNodes.Throttled client) {
        return nodes.throttled().stream()
            .filter(each -> each.kind().equals(client.kind()) && each.user().equals(client.user())
                && each.clientId().equals(client.clientId()) && each.milliseconds() > 0)
            .mapToDouble(EmbeddedNodes.Throttled::milliseconds).findFirst().orElse(Double.NaN);
    }

    /** Register the histograms with which a broker of Kafka shows the throttle times of APIs. */
    static void registerHistograms(EmbeddedNodes nodes) {
        APIS.forEach((name, api) -> registered().put(metricName(name), StandIns.object(Histogram.class, (method, arguments) -> {
            if (!method.equals("max")) {
                throw NeedsKafkaObjects.by("Histogram." + method);
            }
            return nodes.throttled(api);
        })));
    }

    static void removeHistograms() {
        APIS.keySet().forEach(name -> registered().remove(metricName(name)));
    }

    private static com.yammer.metrics.core.MetricName metricName(String request) {
        LinkedHashMap<String, String> tags = new LinkedHashMap<>();
        tags.put("request", request);
        return KafkaYammerMetrics.getMetricName("kafka.network", "RequestMetrics", "ThrottleTimeMs", tags);
    }

    @SuppressWarnings("unchecked")
    private static Map<com.yammer.metrics.core.MetricName, Metric> registered() {
        try {
            Field metrics = MetricsRegistry.class.getDeclaredField("metrics");
            metrics.setAccessible(true);
            return (Map<com.yammer.metrics.core.MetricName, Metric>) metrics.get(KafkaYammerMetrics.defaultRegistry());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
