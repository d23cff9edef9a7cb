package kafkacore.suite;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;

/** Sets the levels of features that a test has chosen. Kafka's test kit writes them when it formats the log folders. */
public final class Features {
    private Features() {
    }

    /** Set levels by name. A level that the cluster does not accept is noted as a setting without effect. */
    public static void set(Admin admin, Map<String, Short> wanted) {
        try {
            Map<String, FinalizedVersionRange> levels = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            for (Map.Entry<String, Short> feature : wanted.entrySet()) {
                FinalizedVersionRange range = levels.get(feature.getKey());
                int level = range == null ? 0 : range.maxVersionLevel();
                if (feature.getValue() != level) {
                    UpgradeType type = feature.getValue() > level ? UpgradeType.UPGRADE : UpgradeType.SAFE_DOWNGRADE;
                    set(admin, feature.getKey(), new FeatureUpdate(feature.getValue(), type));
                }
            }
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException("cannot read the features of the embedded cluster", error);
        }
    }

    private static void set(Admin admin, String name, FeatureUpdate update) throws InterruptedException {
        try {
            admin.updateFeatures(Map.of(name, update), new UpdateFeaturesOptions()).all().get();
        } catch (ExecutionException error) {
            Notes.ignored("feature " + name + "=" + update.maxVersionLevel(), String.valueOf(error.getCause()));
        }
    }
}
