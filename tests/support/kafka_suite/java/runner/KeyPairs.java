package kafkacore.suite;

import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyPairGeneratorSpi;
import java.security.NoSuchAlgorithmException;
import java.security.NoSuchProviderException;
import java.security.Provider;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Generates a few RSA key pairs and returns them again and again, because each test with TLS asks for several, and one takes
 * seconds.
 */
public final class KeyPairs extends Provider {
    private static final long serialVersionUID = 1L;
    /** More than a test uses, so that its key pairs differ. */
    private static final int COUNT = 12;
    private static final Map<Integer, List<KeyPair>> GENERATED = new ConcurrentHashMap<>();
    private static int next;

    public KeyPairs() {
        super("kafkacore", "1", "RSA key pairs for tests");
        put("KeyPairGenerator.RSA", Generator.class.getName());
    }

    private static synchronized KeyPair pair(int size) {
        List<KeyPair> pairs = GENERATED.computeIfAbsent(size, key -> new ArrayList<>());
        if (pairs.size() < COUNT) {
            try {
                KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA", "SunRsaSign");
                generator.initialize(size);
                pairs.add(generator.generateKeyPair());
            } catch (NoSuchAlgorithmException | NoSuchProviderException error) {
                throw new IllegalStateException("this JVM has no RSA", error);
            }
            return pairs.get(pairs.size() - 1);
        }
        next = (next + 1) % COUNT;
        return pairs.get(next);
    }

    /** Java creates it by its name. */
    public static final class Generator extends KeyPairGeneratorSpi {
        private int size = 2048;

        @Override
        public void initialize(int keySize, SecureRandom random) {
            size = keySize;
        }

        @Override
        public KeyPair generateKeyPair() {
            return pair(size);
        }
    }
}
