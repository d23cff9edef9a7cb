import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Writes every request and response of Kafka in every version with Kafka's own generated classes: once with each
 * field at its default, and once with each field of the version set. Each line has key, kind, version, variant and
 * bytes in hexadecimal. The argument is the output file.
 */
public final class GoldenMessages {
    private static final Pattern NOT_IN_VERSION = Pattern.compile("non-default (\\w+) at version");
    /** Values are small enough for every integer type and for lengths. */
    private static final int SMALL = 40;

    private final Set<String> skipped;
    private int counter;

    private GoldenMessages(Set<String> skipped) {
        this.skipped = skipped;
    }

    public static void main(String[] args) throws Exception {
        try (PrintStream out = new PrintStream(args[0], StandardCharsets.US_ASCII)) {
            out.print("# made by org.apache.kafka:kafka-clients:" + AppInfoParser.getVersion() + "\n");
            for (ApiMessageType api : ApiMessageType.values()) {
                short newest = api.highestSupportedVersion(true);
                for (short version = api.lowestSupportedVersion(); version <= newest; version++) {
                    write(out, api, "request", version);
                    write(out, api, "response", version);
                }
            }
        }
    }

    private static void write(PrintStream out, ApiMessageType api, String kind, short version) throws Exception {
        String name = api.apiKey() + " " + kind + " " + version;
        out.print(name + " default " + hex(create(api, kind), version) + "\n");
        Set<String> skipped = new HashSet<>();
        while (true) {
            try {
                Message message = (Message) new GoldenMessages(skipped).fill(create(api, kind));
                out.print(name + " full " + hex(message, version) + "\n");
                return;
            } catch (UnsupportedVersionException e) {
                // This version lacks the field, which keeps its default in the next attempt.
                Matcher field = NOT_IN_VERSION.matcher(e.getMessage());
                if (!field.find() || !skipped.add(field.group(1))) {
                    throw e;
                }
            }
        }
    }

    private static ApiMessage create(ApiMessageType api, String kind) {
        return kind.equals("request") ? api.newRequest() : api.newResponse();
    }

    private static String hex(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] content = new byte[buffer.remaining()];
        buffer.get(content);
        return HexFormat.of().formatHex(content);
    }

    private Object fill(Object message) throws Exception {
        Method[] setters = Arrays.stream(message.getClass().getMethods())
            .filter(method -> method.getName().startsWith("set") && method.getParameterCount() == 1)
            .filter(method -> method.getReturnType() == message.getClass())
            .sorted(Comparator.comparing(Method::getName))
            .toArray(Method[]::new);
        for (Method setter : setters) {
            String field = Character.toLowerCase(setter.getName().charAt(3)) + setter.getName().substring(4);
            Object value = skipped.contains(field) ? null : value(setter.getGenericParameterTypes()[0]);
            if (value != null) {
                setter.invoke(message, value);
            }
        }
        return message;
    }

    private Object value(Type type) throws Exception {
        int number = 1 + counter++ % SMALL;
        if (type == boolean.class) return true;
        if (type == byte.class || type == Byte.class) return (byte) number;
        if (type == short.class || type == Short.class) return (short) (number * 3);
        if (type == int.class || type == Integer.class) return number * 7;
        if (type == long.class || type == Long.class) return number * 1_000_000_007L;
        if (type == double.class || type == Double.class) return number / 8.0;
        if (type == String.class) return "text " + number;
        if (type == Uuid.class) return new Uuid(number, -number);
        if (type == byte[].class) return new byte[] {(byte) number, -1, 0};
        if (type == ByteBuffer.class) return ByteBuffer.wrap(new byte[] {(byte) number, 0, -1});
        if (type == BaseRecords.class) {
            SimpleRecord record = new SimpleRecord(number, new byte[] {1}, new byte[number]);
            return MemoryRecords.withRecords(Compression.NONE, record);
        }
        if (type instanceof ParameterizedType && ((ParameterizedType) type).getRawType() == List.class) {
            List<Object> list = new ArrayList<>();
            Type element = ((ParameterizedType) type).getActualTypeArguments()[0];
            list.add(value(element));
            list.add(value(element));
            return list;
        }
        if (type instanceof Class && Collection.class.isAssignableFrom((Class<?>) type)) {
            Type element = ((ParameterizedType) ((Class<?>) type).getGenericSuperclass()).getActualTypeArguments()[0];
            Object collection = ((Class<?>) type).getConstructor().newInstance();
            Method add = Arrays.stream(((Class<?>) type).getMethods())
                .filter(method -> method.getName().equals("add") && method.getParameterCount() == 1)
                .filter(method -> !Modifier.isAbstract(method.getModifiers())).findFirst().orElseThrow();
            add.invoke(collection, value(element));
            add.invoke(collection, value(element));
            return collection;
        }
        if (type instanceof Class && Message.class.isAssignableFrom((Class<?>) type)) {
            return fill(((Class<?>) type).getConstructor().newInstance());
        }
        throw new IllegalArgumentException("no value for " + type);
    }
}
