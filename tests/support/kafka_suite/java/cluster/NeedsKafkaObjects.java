package kafkacore.suite;

/** A test asked for a Java object of Apache Kafka's broker or controller, which the embedded cluster does not have. */
public final class NeedsKafkaObjects extends UnsupportedOperationException {
    private static final long serialVersionUID = 1L;

    private NeedsKafkaObjects(String method) {
        super(method + " returns a Java object of Apache Kafka's broker, and the embedded cluster is not in this JVM");
    }

    /** Note the use and return the exception to throw. */
    public static NeedsKafkaObjects by(String method) {
        Notes.javaObject(method);
        return new NeedsKafkaObjects(method);
    }
}
