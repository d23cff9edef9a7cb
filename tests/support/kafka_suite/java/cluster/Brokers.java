package kafkacore.suite;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.TreeMap;
import kafka.server.KafkaBroker;
import org.apache.kafka.metadata.BrokerState;

/**
 * Stand-ins for the broker objects of Apache Kafka. They can be started and stopped and know their address. Every other method
 * throws {@link NeedsKafkaObjects}.
 */
public final class Brokers {
    private Brokers() {
    }

    /** Return a broker object for each node. */
    public static Map<Integer, KafkaBroker> of(EmbeddedNodes nodes) {
        Map<Integer, KafkaBroker> brokers = new TreeMap<>();
        nodes.nodeIds().forEach(node -> brokers.put(node, broker(nodes, node)));
        return brokers;
    }

    private static KafkaBroker broker(EmbeddedNodes nodes, int node) {
        InvocationHandler handler = (proxy, method, args) -> switch (method.getName()) {
            case "shutdown" -> {
                nodes.stop(node);
                yield null;
            }
            case "startup" -> {
                nodes.start(node);
                yield null;
            }
            case "awaitShutdown" -> null;
            case "isShutdown" -> !nodes.runningNodes().contains(node);
            case "brokerState" -> nodes.runningNodes().contains(node) ? BrokerState.RUNNING : BrokerState.NOT_RUNNING;
            case "clusterId" -> nodes.clusterId();
            case "boundPort" -> nodes.port(node);
            case "toString" -> "node " + node + " of an embedded cluster";
            case "hashCode" -> node;
            case "equals" -> proxy == args[0];
            default -> throw NeedsKafkaObjects.by("KafkaBroker." + method.getName());
        };
        return (KafkaBroker) Proxy.newProxyInstance(Brokers.class.getClassLoader(), new Class<?>[] {KafkaBroker.class}, handler);
    }
}
