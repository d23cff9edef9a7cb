import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Every error code of Kafka's, a line each: code, name, whether retriable, whether it calls for new metadata. */
public final class ErrorCodes {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.printf("%d %s %b %b%n", error.code(), error.name(),
                    error.exception() instanceof RetriableException,
                    error.exception() instanceof InvalidMetadataException);
        }
    }
}
