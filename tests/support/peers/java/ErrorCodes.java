import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints a line for each of Kafka's error codes: code, name, whether it is retriable, whether metadata is refreshed. */
public final class ErrorCodes {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.printf("%d %s %b %b%n", error.code(), error.name(),
                    error.exception() instanceof RetriableException,
                    error.exception() instanceof InvalidMetadataException);
        }
    }
}
