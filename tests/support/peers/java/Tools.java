import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools in one JVM. Each line of standard input is a JSON list of a tool's class and its arguments;
 * each line of standard output is a JSON object with its exit status and output. Starting a JVM for each tool would take
 * most of the time of a test.
 */
public final class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Thrown when a tool calls exit, to stop the tool without the JVM. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** The output and the exit status of a tool at its first call of exit; later output is ignored. */
    private record Outcome(int status, String out, String err) {
    }

    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    private static Outcome outcome;

    private Tools() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> end(status));
        Exit.setHaltProcedure((status, message) -> end(status));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = new ArrayList<>();
            JSON.readTree(line).forEach((JsonNode word) -> words.add(word.asText()));
            run(words);
            answers.println(JSON.writeValueAsString(JSON.createObjectNode().put("status", outcome.status())
                .put("out", outcome.out()).put("err", outcome.err())));
            answers.flush();
        }
    }

    private static void end(int status) {
        note(status);
        throw new Ended();
    }

    private static void note(int status) {
        if (outcome == null) {
            outcome = new Outcome(status, OUT.toString(StandardCharsets.UTF_8), ERR.toString(StandardCharsets.UTF_8));
        }
    }

    private static void run(List<String> words) throws Exception {
        PrintStream standardOut = System.out;
        PrintStream standardError = System.err;
        PrintStream caughtError = new PrintStream(ERR, true, StandardCharsets.UTF_8);
        outcome = null;
        OUT.reset();
        ERR.reset();
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(caughtError);
        try {
            String[] arguments = words.subList(1, words.size()).toArray(new String[0]);
            Class.forName(words.get(0)).getMethod("main", String[].class).invoke(null, (Object) arguments);
            note(0);
        } catch (InvocationTargetException e) {
            e.getCause().printStackTrace(caughtError);
            note(1);
        } finally {
            System.setOut(standardOut);
            System.setErr(standardError);
        }
    }
}
