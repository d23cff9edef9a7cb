package kafkacore.suite;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/** What the current test has used that the embedded cluster does not have. The runner writes it next to the test's result. */
public final class Notes {
    private static final Set<String> JAVA_OBJECTS = Collections.synchronizedSet(new LinkedHashSet<>());
    private static final Map<String, String> IGNORED = Collections.synchronizedMap(new LinkedHashMap<>());
    private static final Map<String, String> REJECTED = Collections.synchronizedMap(new LinkedHashMap<>());
    private static volatile int clusters;

    private Notes() {
    }

    /** Start with an empty list, before a test. */
    static void clear() {
        JAVA_OBJECTS.clear();
        IGNORED.clear();
        REJECTED.clear();
    }

    /** Note that a test or a class of tests has started a cluster. */
    public static void cluster() {
        clusters++;
    }

    /** Note that the test asked for a Java object of a broker or controller. */
    public static void javaObject(String method) {
        JAVA_OBJECTS.add(method);
    }

    /** Note that the test configured a setting that has no effect on the embedded broker. */
    public static void ignored(String setting, String reason) {
        IGNORED.put(setting, reason);
    }

    /** Note that the embedded broker rejected a setting of the test, so that the cluster did not start. */
    public static void rejected(String setting, String reason) {
        REJECTED.put(setting, reason);
    }

    static Set<String> javaObjects() {
        return JAVA_OBJECTS;
    }

    static Map<String, String> ignored() {
        return IGNORED;
    }

    static Map<String, String> rejected() {
        return REJECTED;
    }

    /** Return how many clusters have been started in this JVM. */
    static int clusters() {
        return clusters;
    }
}
