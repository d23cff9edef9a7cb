import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Writes record batches with Kafka's own client classes: one .bin per case, and golden.json with the records
 * that the same classes read from each. The argument is the output folder.
 */
public final class GoldenBatches {
    private static final long T0 = 1_700_000_000_000L;
    /** Larger values are stored in golden.json as length and SHA-256. */
    private static final int INLINE_LIMIT = 1024;

    private final Path folder;
    private final ObjectMapper json = new ObjectMapper();
    private final ArrayNode cases = json.createArrayNode();

    private GoldenBatches(Path folder) {
        this.folder = folder;
    }

    public static void main(String[] args) throws Exception {
        new GoldenBatches(Path.of(args[0])).writeAll();
    }

    private void writeAll() throws Exception {
        for (CompressionType codec : CompressionType.values()) {
            save("v2-" + codec.name, build(2, codec, TimestampType.CREATE_TIME, small()));
            save("v2-" + codec.name + "-large", build(2, codec, TimestampType.CREATE_TIME, large()));
            save("v2-" + codec.name + "-log-append-time", build(2, codec, TimestampType.LOG_APPEND_TIME, small()));
        }
        save("v2-one-empty-record", build(2, CompressionType.NONE, TimestampType.CREATE_TIME,
            List.of(new SimpleRecord(T0, new byte[0], new byte[0]))));
        save("v2-one-null-record", build(2, CompressionType.NONE, TimestampType.CREATE_TIME,
            List.of(new SimpleRecord(T0, (byte[]) null, null))));
        save("v2-no-timestamp", build(2, CompressionType.NONE, TimestampType.CREATE_TIME,
            List.of(new SimpleRecord(-1, bytes("k"), bytes("v")), new SimpleRecord(-1, null, bytes("w")))));
        save("v2-timestamps-fall-and-jump", build(2, CompressionType.NONE, TimestampType.CREATE_TIME,
            List.of(new SimpleRecord(T0, null, bytes("a")), new SimpleRecord(5, null, bytes("b")),
                new SimpleRecord(T0 * 1000, null, bytes("c")), new SimpleRecord(T0 - 1, null, bytes("d")))));
        save("v2-high-base-offset", records(Compression.NONE, 0x7FFF_FFFF_FFL, 41, -1, (short) -1, -1, false));
        save("v2-idempotent", records(Compression.NONE, 0, 0, 4711, (short) 7, 2_147_483_646, false));
        save("v2-transactional-lz4",
            records(Compression.lz4().build(), 100, 3, Long.MAX_VALUE, (short) 32767, 0, true));
        save("v2-transaction-commit-marker", marker(ControlRecordType.COMMIT));
        save("v2-transaction-abort-marker", marker(ControlRecordType.ABORT));
        save("v2-leader-change", MemoryRecords.withLeaderChangeMessage(9, T0, 2, ByteBuffer.allocate(256),
            new LeaderChangeMessage().setLeaderId(1).setVersion((short) 0)));
        save("v2-delete-horizon", deleteHorizon());
        save("v2-compacted-with-gaps", compacted(CompressionType.NONE));
        save("v2-compacted-with-gaps-zstd", compacted(CompressionType.ZSTD));
        save("v2-emptied-by-compaction", emptied());
        save("v2-every-codec-in-one-log", everyCodec());
        for (int magic = 0; magic <= 1; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec != CompressionType.ZSTD) {
                    save("v" + magic + "-" + codec.name, build(magic, codec, TimestampType.CREATE_TIME, plain(magic)));
                }
            }
        }
        save("v1-none-log-append-time", build(1, CompressionType.NONE, TimestampType.LOG_APPEND_TIME, plain(1)));
        save("v1-gzip-log-append-time", build(1, CompressionType.GZIP, TimestampType.LOG_APPEND_TIME, plain(1)));
        save("v0-v1-v2-in-one-log", concatenate(List.of(
            build(0, CompressionType.NONE, TimestampType.CREATE_TIME, plain(0)),
            build(1, CompressionType.GZIP, TimestampType.CREATE_TIME, plain(1)),
            build(2, CompressionType.SNAPPY, TimestampType.CREATE_TIME, small()))));
        ObjectNode all = json.createObjectNode();
        all.put("made_by", "org.apache.kafka:kafka-clients:" + AppInfoParser.getVersion());
        all.set("cases", cases);
        DefaultPrettyPrinter printer = new DefaultPrettyPrinter();
        printer.indentArraysWith(DefaultIndenter.SYSTEM_LINEFEED_INSTANCE);
        Files.write(folder.resolve("golden.json"), bytes(json.writer(printer).writeValueAsString(all) + "\n"));
    }

    // ---- Input records ---------------------------------------------------------------------------------------

    private static List<SimpleRecord> small() {
        Header[] many = new Header[20];
        for (int i = 0; i < many.length; i++) {
            many[i] = new RecordHeader("h" + i % 3, bytes("value " + i));
        }
        return List.of(
            new SimpleRecord(T0, bytes("key"), bytes("value")),
            new SimpleRecord(T0 + 1, null, bytes("no key")),
            new SimpleRecord(T0 + 2, bytes("no value"), null),
            new SimpleRecord(T0 + 2, (byte[]) null, null),
            new SimpleRecord(T0 + 1000, new byte[0], new byte[0]),
            new SimpleRecord(T0 + 500, bytes("headers"), bytes("some"), new Header[] {
                new RecordHeader("a", bytes("1")), new RecordHeader("a", bytes("2")),
                new RecordHeader("null", (byte[]) null), new RecordHeader("empty", new byte[0]),
                new RecordHeader("", bytes("empty key")), new RecordHeader("ключ-鍵-🔑", bytes("Unicode"))}),
            new SimpleRecord(T0 + 600, bytes("headers"), bytes("many"), many),
            new SimpleRecord(T0 + 601, bytes("binary"), new byte[] {0, -1, -128, 127, 13, 10, 0}));
    }

    /** Larger than one block of every codec, and partly incompressible. */
    private static List<SimpleRecord> large() {
        Random random = new Random(20_260_101);
        List<SimpleRecord> records = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            byte[] value = new byte[i * 30];
            random.nextBytes(value);
            records.add(new SimpleRecord(T0 + i, bytes("key " + i % 7), value));
        }
        records.add(new SimpleRecord(T0 + 40, bytes("repeated"), bytes("0123456789".repeat(7_000))));
        return records;
    }

    /** Without headers, which magic 0 and 1 lack; without timestamps in magic 0. */
    private static List<SimpleRecord> plain(int magic) {
        long t = magic == 0 ? RecordBatch.NO_TIMESTAMP : T0;
        long step = magic == 0 ? 0 : 1;
        return List.of(
            new SimpleRecord(t, bytes("key"), bytes("value")),
            new SimpleRecord(t + step, null, bytes("no key")),
            new SimpleRecord(t + 2 * step, bytes("no value"), null),
            new SimpleRecord(t + 3 * step, new byte[0], new byte[0]),
            new SimpleRecord(t + step, bytes("later"), bytes("earlier")));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    // ---- Writing batches -------------------------------------------------------------------------------------

    private static Compression compression(CompressionType codec) {
        return Compression.of(codec).build();
    }

    private static MemoryRecords build(int magic, CompressionType codec, TimestampType type,
                                       List<SimpleRecord> records) {
        long logAppendTime = type == TimestampType.LOG_APPEND_TIME ? T0 + 5_000 : RecordBatch.NO_TIMESTAMP;
        try (MemoryRecordsBuilder builder = MemoryRecords.builder(
                ByteBuffer.allocate(1024), (byte) magic, compression(codec), type, 0L, logAppendTime)) {
            records.forEach(builder::append);
            return builder.build();
        }
    }

    private static MemoryRecords records(Compression compression, long baseOffset, int leaderEpoch, long producerId,
                                         short epoch, int sequence, boolean transactional) {
        return MemoryRecords.withRecords(RecordBatch.MAGIC_VALUE_V2, baseOffset, compression, TimestampType.CREATE_TIME,
            producerId, epoch, sequence, leaderEpoch, transactional, small().toArray(new SimpleRecord[0]));
    }

    private static MemoryRecords marker(ControlRecordType type) {
        return MemoryRecords.withEndTransactionMarker(12, T0, 4, 4711, (short) 7, new EndTransactionMarker(type, 5));
    }

    private static MemoryRecords deleteHorizon() {
        try (MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024), RecordBatch.MAGIC_VALUE_V2, Compression.NONE, TimestampType.CREATE_TIME,
                0, RecordBatch.NO_TIMESTAMP, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
                RecordBatch.NO_SEQUENCE, false, false, 2, 1024, T0 + 86_400_000L)) {
            builder.append(new SimpleRecord(T0, bytes("gone"), null));
            builder.append(new SimpleRecord(T0 + 1, bytes("kept"), bytes("value")));
            return builder.build();
        }
    }

    private static MemoryRecords filter(MemoryRecords from, MemoryRecords.RecordFilter.BatchRetention retention,
                                        int keepEach) {
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(T0, 0) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(retention, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return keepEach > 0 && record.offset() % keepEach == 1;
            }
        };
        ByteBuffer buffer = from.filterTo(filter, ByteBuffer.allocate(4096), BufferSupplier.NO_CACHING).outputBuffer();
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    private static MemoryRecords compacted(CompressionType codec) {
        MemoryRecords all = records(compression(codec), 50, 1, 4711, (short) 0, 10, false);
        return filter(all, MemoryRecords.RecordFilter.BatchRetention.DELETE_EMPTY, 3);
    }

    /** The cleaner keeps the bare header of a producer's last batch, for its sequence. */
    private static MemoryRecords emptied() {
        MemoryRecords all = records(Compression.NONE, 50, 1, 4711, (short) 0, 10, false);
        return filter(all, MemoryRecords.RecordFilter.BatchRetention.RETAIN_EMPTY, 0);
    }

    private static MemoryRecords everyCodec() {
        List<MemoryRecords> parts = new ArrayList<>();
        long offset = 0;
        for (CompressionType codec : CompressionType.values()) {
            parts.add(records(compression(codec), offset, 0, -1, (short) -1, -1, false));
            offset += small().size();
        }
        return concatenate(parts);
    }

    private static MemoryRecords concatenate(List<MemoryRecords> parts) {
        ByteBuffer buffer = ByteBuffer.allocate(parts.stream().mapToInt(MemoryRecords::sizeInBytes).sum());
        parts.forEach(part -> buffer.put(part.buffer()));
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    // ---- Records read back -------------------------------------------------------------------------------------

    private void save(String name, MemoryRecords records) throws IOException {
        byte[] content = new byte[records.sizeInBytes()];
        records.buffer().get(content);
        Files.write(folder.resolve(name + ".bin"), content);
        ObjectNode entry = cases.addObject();
        entry.put("name", name);
        ArrayNode batches = entry.putArray("batches");
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(content)).batches()) {
            batch.ensureValid();
            describe(batch, batches.addObject());
        }
    }

    private void describe(MutableRecordBatch batch, ObjectNode to) {
        to.put("base_offset", batch.baseOffset());
        to.put("last_offset", batch.lastOffset());
        to.put("next_offset", batch.nextOffset());
        to.put("size_in_bytes", batch.sizeInBytes());
        to.put("magic", batch.magic());
        to.put("crc", batch.checksum());
        to.put("compression", batch.compressionType().id);
        to.put("timestamp_type", batch.timestampType().id);
        to.put("max_timestamp", batch.maxTimestamp());
        to.put("is_transactional", batch.isTransactional());
        to.put("is_control", batch.isControlBatch());
        to.put("producer_id", batch.producerId());
        to.put("producer_epoch", batch.producerEpoch());
        to.put("base_sequence", batch.baseSequence());
        to.put("partition_leader_epoch", batch.partitionLeaderEpoch());
        if (batch instanceof DefaultRecordBatch) {
            to.put("base_timestamp", ((DefaultRecordBatch) batch).baseTimestamp());
            to.put("record_count", batch.countOrNull());
            batch.deleteHorizonMs().ifPresent(at -> to.put("delete_horizon_ms", at));
        }
        ArrayNode records = to.putArray("records");
        try (CloseableIterator<Record> each = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            each.forEachRemaining(record -> describe(record, records.addObject()));
        }
    }

    private void describe(Record record, ObjectNode to) {
        to.put("offset", record.offset());
        to.put("timestamp", record.timestamp());
        put(to, "key", record.hasKey() ? record.key() : null);
        put(to, "value", record.hasValue() ? record.value() : null);
        ArrayNode headers = to.putArray("headers");
        for (Header header : record.headers()) {
            ObjectNode entry = headers.addObject();
            entry.put("key", header.key());
            put(entry, "value", header.value() == null ? null : ByteBuffer.wrap(header.value()));
        }
    }

    private static void put(ObjectNode to, String name, ByteBuffer value) {
        if (value == null) {
            to.putNull(name);
            return;
        }
        byte[] content = new byte[value.remaining()];
        value.duplicate().get(content);
        if (content.length <= INLINE_LIMIT) {
            to.put(name, Base64.getEncoder().encodeToString(content));
            return;
        }
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(content);
            to.putObject(name).put("length", content.length).put("sha256", Base64.getEncoder().encodeToString(digest));
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
