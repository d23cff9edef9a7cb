package kafkacore.suite;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs classes and methods of Kafka's tests ({@code SuiteRunner RESULTS SECONDS CLASS[#METHOD]...}). It appends two JSON objects
 * per test to the file RESULTS, one at the start and one with the result. A test has SECONDS to complete unless it sets its own
 * limit. The property {@code kafkacore.leftOut} is a regular expression for the tests to leave out.
 */
public final class SuiteRunner {
    private SuiteRunner() {
    }

    public static void main(String[] args) throws Exception {
        Security.insertProviderAt(new KeyPairs(), 1);
        List<DiscoverySelector> selectors = new ArrayList<>();
        for (String test : List.of(args).subList(2, args.length)) {
            String[] name = test.split("#");
            selectors.addAll(selected(Class.forName(name[0]), name.length > 1 ? name[1] : null));
        }
        PrintWriter results = new PrintWriter(Files.newBufferedWriter(Path.of(args[0]), StandardCharsets.UTF_8), true);
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
            .selectors(selectors)
            .filters(leftOut(results))
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true")
            .configurationParameter("junit.jupiter.execution.timeout.testable.method.default", args[1] + " s")
            .build();
        LauncherFactory.create().execute(request, new Listener(results));
        results.close();
        // A client that a failed test left open must not keep the program alive.
        Runtime.getRuntime().halt(0);
    }

    private static List<DiscoverySelector> selected(Class<?> type, String method) {
        if (method == null) {
            return List.of(selectClass(type));
        }
        Map<String, DiscoverySelector> found = new TreeMap<>();
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Method one : each.getDeclaredMethods()) {
                if (one.getName().equals(method)) {
                    found.putIfAbsent(one.toGenericString(), selectMethod(type, one));
                }
            }
        }
        if (found.isEmpty()) {
            throw new IllegalArgumentException(type.getName() + " has no method " + method);
        }
        return new ArrayList<>(found.values());
    }

    /** Return a filter that excludes the tests whose {@code class#method} matches the property, and writes a line for each. */
    private static PostDiscoveryFilter leftOut(PrintWriter results) {
        Pattern names = Pattern.compile(System.getProperty("kafkacore.leftOut"));
        return test -> {
            if (test.getSource().orElse(null) instanceof MethodSource source
                    && names.matcher(source.getClassName() + "#" + source.getMethodName()).matches()) {
                results.println(new ObjectMapper().createObjectNode().put("status", "left out")
                    .put("class", source.getClassName()).put("method", source.getMethodName()).put("number", ""));
                return FilterResult.excluded("left out by name");
            }
            return FilterResult.included(null);
        };
    }

    private static final class Listener implements TestExecutionListener {
        private static final ObjectMapper JSON = new ObjectMapper();
        private final PrintWriter results;
        private long startedAt;

        Listener(PrintWriter results) {
            this.results = results;
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            if (test.isTest()) {
                Notes.clear();
                startedAt = System.nanoTime();
                write(described(test, "started"));
            }
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            write(described(test, "skipped").put("error", reason));
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            // A container has a result of its own only if it failed, for example in a method that prepares all tests.
            if (!test.isTest() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL) {
                return;
            }
            String status = switch (result.getStatus()) {
                case SUCCESSFUL -> "passed";
                case FAILED -> "failed";
                case ABORTED -> "aborted";
            };
            ObjectNode line = described(test, status).put("clusters", Notes.clusters());
            if (test.isTest()) {
                line.put("seconds", Math.round((System.nanoTime() - startedAt) / 1e7) / 100.0);
            }
            result.getThrowable().ifPresent(error -> line.put("error", String.valueOf(error)).put("trace", trace(error)));
            Notes.javaObjects().forEach(line.putArray("java_objects")::add);
            Notes.ignored().forEach(line.putObject("ignored")::put);
            Notes.rejected().forEach(line.putObject("rejected")::put);
            write(line);
        }

        private static ObjectNode described(TestIdentifier test, String status) {
            String type = "";
            String method = "";
            if (test.getSource().orElse(null) instanceof MethodSource source) {
                type = source.getClassName();
                method = source.getMethodName();
            } else if (test.getSource().orElse(null) instanceof ClassSource source) {
                type = source.getClassName();
            }
            String last = test.getUniqueIdObject().getLastSegment().getValue();
            return JSON.createObjectNode().put("status", status).put("class", type).put("method", method)
                .put("number", last.startsWith("#") ? last.substring(1) : "").put("name", test.getDisplayName());
        }

        private static String trace(Throwable error) {
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            return text.toString();
        }

        private synchronized void write(ObjectNode line) {
            results.println(line);
        }
    }
}
