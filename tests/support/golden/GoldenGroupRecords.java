import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue.ClassicProtocol;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue.PartitionMetadata;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue.TopicMetadata;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ResolvedRegularExpression;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Writes the records of consumer groups with the group coordinator's own classes. Each line has the name of the
 * record, and key and value in hexadecimal; the value of a tombstone is a dash. The argument is the output file.
 */
public final class GoldenGroupRecords {
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();
    private static final Uuid FIRST = new Uuid(0x0001020304050607L, 0x08090a0b0c0d0e0fL);
    private static final Uuid SECOND = new Uuid(0x1011121314151617L, 0x18191a1b1c1d1e1fL);
    private static final String GROUP = "grüppe";
    private static final String MEMBER = "member-1";

    private final PrintStream out;

    private GoldenGroupRecords(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        try (PrintStream out = new PrintStream(args[0], StandardCharsets.US_ASCII)) {
            out.print("# made by org.apache.kafka:kafka-group-coordinator:" + AppInfoParser.getVersion() + "\n");
            GoldenGroupRecords golden = new GoldenGroupRecords(out);
            golden.writeGroup();
            golden.writeSubscriptions();
            golden.writeTargets();
            golden.writePartitions();
            golden.writeRegularExpressions();
        }
    }

    private void writeGroup() {
        write("group", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord(GROUP, 7, -123_456_789_012L));
        write("group-without-hash", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord("", 1, 0));
        write("group-tombstone", GroupCoordinatorRecordHelpers.newConsumerGroupEpochTombstoneRecord(GROUP));
        write("partition-metadata", CoordinatorRecord.record(
            new ConsumerGroupPartitionMetadataKey().setGroupId(GROUP),
            new ApiMessageAndVersion(new ConsumerGroupPartitionMetadataValue().setTopics(List.of(
                new TopicMetadata().setTopicId(FIRST).setTopicName("a").setNumPartitions(2).setPartitionMetadata(
                    List.of(new PartitionMetadata().setPartition(1).setRacks(List.of("r1", "r2")))),
                new TopicMetadata().setTopicId(SECOND).setTopicName("b").setNumPartitions(1)
            )), (short) 0)));
        write("partition-metadata-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupSubscriptionMetadataTombstoneRecord(GROUP));
    }

    private void writeSubscriptions() {
        write("subscription", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord(GROUP,
            new ConsumerGroupMember.Builder(MEMBER)
                .setInstanceId("instance")
                .setRackId("rack")
                .setClientId("client")
                .setClientHost("/127.0.0.1")
                .setSubscribedTopicNames(List.of("topic-b", "Topic", "topic-a"))
                .setSubscribedTopicRegex("topic.*")
                .setServerAssignorName("uniform")
                .setRebalanceTimeoutMs(300_000)
                .build()));
        write("subscription-of-nulls", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord(GROUP,
            new ConsumerGroupMember.Builder(MEMBER)
                .setInstanceId(null)
                .setRackId(null)
                .setSubscribedTopicRegex(null)
                .setServerAssignorName(null)
                .build()));
        write("subscription-of-a-classic-member",
            GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord(GROUP,
                new ConsumerGroupMember.Builder(MEMBER)
                    .setClientId("client")
                    .setClientHost("/127.0.0.1")
                    .setSubscribedTopicNames(List.of("topic"))
                    .setRebalanceTimeoutMs(60_000)
                    .setClassicMemberMetadata(new ClassicMemberMetadata()
                        .setSessionTimeoutMs(45_000)
                        .setSupportedProtocols(List.of(
                            new ClassicProtocol().setName("range").setMetadata(new byte[] {0, 1, -1}),
                            new ClassicProtocol().setName("sticky").setMetadata(new byte[0]))))
                    .build()));
        write("subscription-of-a-classic-member-without-protocols",
            GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord(GROUP,
                new ConsumerGroupMember.Builder(MEMBER)
                    .setClassicMemberMetadata(new ClassicMemberMetadata())
                    .build()));
        write("subscription-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionTombstoneRecord(GROUP, MEMBER));
    }

    private void writeTargets() {
        write("target-epoch",
            GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataRecord(GROUP, 8, 1_700_000_000_000L));
        write("target-epoch-without-time",
            GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataRecord(GROUP, 8, 0));
        write("target-epoch-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataTombstoneRecord(GROUP));
        Map<Uuid, Set<Integer>> partitions = new LinkedHashMap<>();
        partitions.put(SECOND, new LinkedHashSet<>(List.of(0, 2, 300)));
        partitions.put(FIRST, Set.of(5));
        write("target", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord(GROUP, MEMBER, partitions));
        write("target-of-nothing",
            GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord(GROUP, MEMBER, Map.of()));
        write("target-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentTombstoneRecord(GROUP, MEMBER));
    }

    private void writePartitions() {
        Map<Uuid, Map<Integer, Integer>> assigned = new LinkedHashMap<>();
        Map<Integer, Integer> epochs = new LinkedHashMap<>();
        epochs.put(0, 7);
        epochs.put(2, 9);
        assigned.put(SECOND, epochs);
        assigned.put(FIRST, Map.of(1, 8));
        write("partitions", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord(GROUP,
            new ConsumerGroupMember.Builder(MEMBER)
                .setMemberEpoch(9)
                .setPreviousMemberEpoch(8)
                .setState(MemberState.UNREVOKED_PARTITIONS)
                .setAssignedPartitions(assigned)
                .setPartitionsPendingRevocation(Map.of(FIRST, Map.of(4, 3)))
                .build()));
        write("partitions-of-a-new-member", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord(GROUP,
            new ConsumerGroupMember.Builder(MEMBER).setMemberEpoch(1).build()));
        write("partitions-of-a-static-member-that-left",
            GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord(GROUP,
                new ConsumerGroupMember.Builder(MEMBER)
                    .setMemberEpoch(-2)
                    .setPreviousMemberEpoch(9)
                    .setState(MemberState.UNRELEASED_PARTITIONS)
                    .setAssignedPartitions(Map.of(FIRST, Map.of(1, 8)))
                    .build()));
        write("partitions-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentTombstoneRecord(GROUP, MEMBER));
    }

    private void writeRegularExpressions() {
        write("regex", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionRecord(GROUP, "topic.*",
            new ResolvedRegularExpression(Set.of("topic-b", "Topic", "topic-a"), 12, 1_700_000_000_000L)));
        write("regex-without-topics", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionRecord(GROUP, "x",
            ResolvedRegularExpression.EMPTY));
        write("regex-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionTombstone(GROUP, "topic.*"));
    }

    private void write(String name, CoordinatorRecord record) {
        byte[] value = SERDE.serializeValue(record);
        HexFormat hex = HexFormat.of();
        out.print(name + " " + hex.formatHex(SERDE.serializeKey(record)) + " "
            + (value == null ? "-" : hex.formatHex(value)) + "\n");
    }
}
