package kafkacore.suite;

import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Skips the invocations of parameterized tests whose display name contains a match of the property
 * {@code kafkacore.leftOutInvocations}. JUnit finds the class in META-INF/services.
 */
public final class LeftOutInvocations implements ExecutionCondition {
    private static final Pattern NAMES = Pattern.compile(System.getProperty("kafkacore.leftOutInvocations"));

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        return context.getTestMethod().isPresent() && NAMES.matcher(context.getDisplayName()).find()
            ? ConditionEvaluationResult.disabled("left out by name") : ConditionEvaluationResult.enabled("");
    }
}
