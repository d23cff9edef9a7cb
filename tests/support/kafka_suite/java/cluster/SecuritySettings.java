package kafkacore.suite;

import static org.mockito.Mockito.withSettings;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.Certificate;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLSession;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.x500.X500Principal;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.AuthenticationContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.PlaintextAuthenticationContext;
import org.apache.kafka.common.security.auth.SaslAuthenticationContext;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.auth.SslAuthenticationContext;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.mockito.Answers;
import org.mockito.MockMakers;
import org.mockito.Mockito;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Translates the security settings of a broker that exist in Java only: key stores in the format JKS, the login modules of a JAAS
 * file, classes that build principals, and subclasses of {@code StandardAuthorizer}.
 */
final class SecuritySettings {
    private static final Pattern STORE =
        Pattern.compile("(listener\\.name\\..+?\\.)?ssl\\.(key\\.password|(keystore|truststore)\\.[a-z.]+)");
    private static final Pattern BUILDER = Pattern.compile("(listener\\.name\\..+\\.)?principal\\.builder\\.class");
    private static final String AUTHORIZER = "authorizer.class.name";
    private static final String JAAS_FILE = "java.security.auth.login.config";
    private static final String UNSECURED_TOKENS =
        "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler";
    private static final String HANDLER = "sasl.server.callback.handler.class";
    private static final String PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule";
    private static final Map<String, String> MODULES = Map.of(
        "PLAIN", "PlainLoginModule", "SCRAM-SHA-256", "ScramLoginModule", "SCRAM-SHA-512", "ScramLoginModule",
        "OAUTHBEARER", "OAuthBearerLoginModule", "GSSAPI", "Krb5LoginModule");

    private final Map<String, Object> given;
    private final Map<String, Object> translated = new HashMap<>();
    /** Principals by listener, and by the user or the certificate's SHA-256; the empty key stands for all others. */
    private final Map<String, Map<String, String>> principals = new TreeMap<>();

    /** Translate the properties of the first node. All nodes of an embedded cluster have the same settings. */
    SecuritySettings(Map<String, Object> given) {
        this.given = given;
        translateAuthorizer();
        translateStores();
        for (String listener : text("listeners", "").split(",")) {
            String name = listener.trim().split("://")[0].toUpperCase(Locale.ROOT);
            if (!name.isEmpty()) {
                translate(name, protocol(name));
            }
        }
    }

    /** Return the properties that take the place of those that {@link #isTranslated} names. */
    Map<String, Object> translated() {
        return translated;
    }

    /** Return the principals that the classes of the test build. */
    Map<String, Map<String, String>> principals() {
        return principals;
    }

    /** Return whether a property is translated, for every node. */
    boolean isTranslated(String name) {
        return STORE.matcher(name).matches() || name.equals(AUTHORIZER) || translated.containsKey(name)
            || (BUILDER.matcher(name).matches() && !principals.isEmpty());
    }

    private String text(String name, String otherwise) {
        Object value = given.get(name);
        return value == null ? otherwise : value instanceof Password secret ? secret.value() : value.toString();
    }

    /** Return a setting of TLS by its full name, which may be set for all listeners instead. */
    private String inherited(String name, String otherwise) {
        return text(name, text(name.substring(name.lastIndexOf("ssl.")), otherwise));
    }

    /** Return a setting of a listener, which may be set for all listeners instead. */
    private String ofListener(String listener, String name, String otherwise) {
        return text("listener.name." + listener.toLowerCase(Locale.ROOT) + "." + name, text(name, otherwise));
    }

    private SecurityProtocol protocol(String listener) {
        for (String pair : text("listener.security.protocol.map", "").split(",")) {
            String[] parts = pair.trim().split(":");
            if (parts[0].equalsIgnoreCase(listener)) {
                return SecurityProtocol.forName(parts[1]);
            }
        }
        return SecurityProtocol.forName(listener);
    }

    private void translate(String listener, SecurityProtocol protocol) {
        if (protocol == SecurityProtocol.SASL_PLAINTEXT || protocol == SecurityProtocol.SASL_SSL) {
            translateMechanisms(listener);
        }
        String builder = ofListener(listener, "principal.builder.class", "");
        if (!builder.isEmpty()) {
            try {
                principals.put(listener, built(listener, protocol, builder));
            } catch (ReflectiveOperationException | RuntimeException error) {
                // The property stays, and the embedded broker rejects it.
                principals.remove(listener);
            }
        }
    }

    // ---- Authorizer ----------------------------------------------------------------------------------------------------------

    private void translateAuthorizer() {
        String name = text(AUTHORIZER, "");
        if (name.isEmpty()) {
            return;
        }
        translated.put(AUTHORIZER, name);
        try {
            Class<?> type = Class.forName(name);
            if (type != StandardAuthorizer.class && StandardAuthorizer.class.isAssignableFrom(type)) {
                Notes.ignored(AUTHORIZER, "the embedded broker uses its own authorizer instead of " + name);
                translated.put(AUTHORIZER, StandardAuthorizer.class.getName());
                if (Arrays.stream(type.getDeclaredMethods()).anyMatch(each -> each.getName().equals("authorize"))
                        && allowsAll((StandardAuthorizer) type.getDeclaredConstructor().newInstance())) {
                    translated.put("allow.everyone.if.no.acl.found", "true");
                }
            }
        } catch (ReflectiveOperationException error) {
            // The embedded broker rejects it.
        }
    }

    /** Return whether an authorizer of a test allows a request although there are no access control entries. */
    private static boolean allowsAll(StandardAuthorizer authorizer) {
        AuthorizableRequestContext context = Mockito.mock(AuthorizableRequestContext.class,
            withSettings().mockMaker(MockMakers.PROXY).stubOnly().defaultAnswer(
                call -> call.getMethod().getName().equals("principal") ? KafkaPrincipal.ANONYMOUS
                    : Answers.RETURNS_DEFAULTS.answer(call)));
        ResourcePattern topic = new ResourcePattern(ResourceType.TOPIC, "topic", PatternType.LITERAL);
        return authorizer.authorize(context, List.of(new Action(AclOperation.READ, topic, 1, true, true)))
            .equals(List.of(AuthorizationResult.ALLOWED));
    }

    // ---- Key stores ------------------------------------------------------------------------------------------------------------

    private void translateStores() {
        Map<String, String> prefixes = new TreeMap<>();
        given.keySet().forEach(name -> {
            Matcher store = STORE.matcher(name);
            if (store.matches()) {
                prefixes.put(store.group(1) == null ? "" : store.group(1), "");
                translated.put(name, given.get(name));
            }
        });
        prefixes.keySet().forEach(prefix -> {
            try {
                translateKeys(prefix + "ssl.");
                translateTrusted(prefix + "ssl.");
            } catch (GeneralSecurityException | IOException error) {
                throw new IllegalStateException("a key store of the test cannot be read", error);
            }
        });
    }

    private void translateKeys(String ssl) throws GeneralSecurityException, IOException {
        String location = text(ssl + "keystore.location", null);
        if (location != null && !Files.exists(Path.of(location))) {
            // Some tests check in this way that every listener uses its own key store.
            forget(ssl + "keystore.");
            translated.remove(ssl + "key.password");
            return;
        }
        KeyStore store = store(ssl + "keystore.");
        if (store == null) {
            return;
        }
        char[] password = inherited(ssl + "key.password", inherited(ssl + "keystore.password", "")).toCharArray();
        for (String alias : Collections.list(store.aliases())) {
            if (store.isKeyEntry(alias)) {
                Key key = store.getKey(alias, password);
                forget(ssl + "keystore.");
                translated.remove(ssl + "key.password");
                translated.put(ssl + "keystore.key", pem("PRIVATE KEY", key.getEncoded()));
                translated.put(ssl + "keystore.certificate.chain", pem(List.of(store.getCertificateChain(alias))));
                return;
            }
        }
    }

    private void translateTrusted(String ssl) throws GeneralSecurityException, IOException {
        KeyStore store = store(ssl + "truststore.");
        if (store == null) {
            return;
        }
        List<Certificate> found = new ArrayList<>();
        for (String alias : Collections.list(store.aliases())) {
            found.add(store.getCertificate(alias));
        }
        forget(ssl + "truststore.");
        translated.put(ssl + "truststore.certificates", pem(found));
    }

    /** Return a key store of Java, or {@code null} if there is none in this format. */
    private KeyStore store(String prefix) throws GeneralSecurityException, IOException {
        String location = text(prefix + "location", null);
        String type = inherited(prefix + "type", "JKS");
        if (location == null || type.equals("PEM")) {
            return null;
        }
        KeyStore store = KeyStore.getInstance(type);
        try (InputStream file = Files.newInputStream(Path.of(location))) {
            store.load(file, inherited(prefix + "password", "").toCharArray());
        }
        return store;
    }

    private void forget(String prefix) {
        translated.keySet().removeIf(name -> name.startsWith(prefix));
    }

    private static String pem(List<Certificate> certificates) throws GeneralSecurityException {
        StringBuilder text = new StringBuilder();
        for (Certificate each : certificates) {
            text.append(pem("CERTIFICATE", each.getEncoded()));
        }
        return text.toString();
    }

    private static String pem(String kind, byte[] content) {
        String base64 = Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII)).encodeToString(content);
        return "-----BEGIN " + kind + "-----\n" + base64 + "\n-----END " + kind + "-----\n";
    }

    // ---- SASL ------------------------------------------------------------------------------------------------------------------

    private void translateMechanisms(String listener) {
        String prefix = "listener.name." + listener.toLowerCase(Locale.ROOT) + ".";
        // Kafka's default.
        String mechanisms = ofListener(listener, "sasl.enabled.mechanisms", "GSSAPI");
        if (!given.containsKey("sasl.enabled.mechanisms")) {
            translated.put(prefix + "sasl.enabled.mechanisms", mechanisms);
        }
        for (String each : mechanisms.split(",")) {
            String mechanism = each.trim();
            String ofMechanism = prefix + mechanism.toLowerCase(Locale.ROOT) + ".";
            String handler = text(ofMechanism + HANDLER, "");
            if (mechanism.equals("PLAIN") && !handler.isEmpty()) {
                translated.put(ofMechanism + "sasl.jaas.config", written(PLAIN_MODULE, accepted(handler)));
                translated.put(ofMechanism + HANDLER, "");
            } else if (System.getProperty(JAAS_FILE) != null && !given.containsKey(ofMechanism + "sasl.jaas.config")) {
                login(listener, mechanism).ifPresent(module -> translated.put(ofMechanism + "sasl.jaas.config", module));
            }
            if (mechanism.equals("OAUTHBEARER") && !given.containsKey(ofMechanism + HANDLER)) {
                translated.put(ofMechanism + HANDLER, UNSECURED_TOKENS);
            }
        }
    }

    /** Return the login module of a mechanism from the JAAS file. */
    private Optional<String> login(String listener, String mechanism) {
        JaasContext context;
        try {
            context = JaasContext.loadServerContext(new ListenerName(listener), mechanism, Map.of());
        } catch (IllegalArgumentException error) {
            return Optional.empty();
        }
        return context.configurationEntries().stream()
            .filter(entry -> entry.getLoginModuleName().endsWith("." + MODULES.get(mechanism)))
            .map(entry -> written(entry.getLoginModuleName(), entry.getOptions())).findFirst();
    }

    /**
     * Return the users and passwords that the class of a test accepts, as options of the login module. The test has them in a map
     * of Scala: {@code SaslPlainSslEndToEndAuthorizationTest.Credentials.allUsers}.
     */
    private static Map<String, String> accepted(String handler) {
        try {
            Class<?> type = Class.forName(handler);
            Class<?> credentials = Class.forName(type.getName().replaceFirst("\\$.*", "") + "$Credentials$");
            Map<?, ?> known = CollectionConverters.asJava((scala.collection.Map<?, ?>)
                credentials.getMethod("allUsers").invoke(credentials.getField("MODULE$").get(null)));
            AuthenticateCallbackHandler made = (AuthenticateCallbackHandler) type.getDeclaredConstructor().newInstance();
            Map<String, String> found = new TreeMap<>();
            for (Map.Entry<?, ?> user : known.entrySet()) {
                String name = user.getKey().toString();
                PlainAuthenticateCallback password = new PlainAuthenticateCallback(user.getValue().toString().toCharArray());
                made.handle(new Callback[] {new NameCallback("name", name), password});
                if (password.authenticated()) {
                    found.put("user_" + name, user.getValue().toString());
                }
            }
            return found;
        } catch (ReflectiveOperationException | IOException | UnsupportedCallbackException error) {
            throw new IllegalStateException("the users of " + handler + " are unknown", error);
        }
    }

    private static String written(String module, Map<String, ?> options) {
        StringBuilder text = new StringBuilder(module).append(" required");
        options.forEach((name, value) -> text.append(' ').append(name).append("=\"")
            .append(value.toString().replace("\\", "\\\\").replace("\"", "\\\"")).append('"'));
        return text.append(';').toString();
    }

    // ---- Principals ------------------------------------------------------------------------------------------------------------

    private Map<String, String> built(String listener, SecurityProtocol protocol, String name)
            throws ReflectiveOperationException {
        KafkaPrincipalBuilder builder =
            (KafkaPrincipalBuilder) Class.forName(name).getDeclaredConstructor().newInstance();
        InetAddress address = InetAddress.getLoopbackAddress();
        Map<String, String> found = new LinkedHashMap<>();
        switch (protocol) {
            case PLAINTEXT ->
                found.put("", builder.build(new PlaintextAuthenticationContext(address, listener)).toString());
            case SSL -> clients().forEach((hash, subject) ->
                found.put(hash, principal(builder, new SslAuthenticationContext(session(subject), address, listener))));
            default -> users().forEach(user -> found.put(user, principal(builder,
                new SaslAuthenticationContext(server(user), protocol, address, listener,
                    Optional.of(session(new X500Principal("O=A client,CN=localhost")))))));
        }
        return found;
    }

    private static String principal(KafkaPrincipalBuilder builder, AuthenticationContext context) {
        KafkaPrincipal principal = builder.build(context);
        return principal.toString();
    }

    /** Return the subjects of the certificates that a client can present, by SHA-256: each signs itself and is trusted. */
    private Map<String, X500Principal> clients() {
        try {
            Map<String, X500Principal> found = new HashMap<>();
            KeyStore store = store("ssl.truststore.");
            if (store != null) {
                for (String alias : Collections.list(store.aliases())) {
                    X509Certificate certificate = (X509Certificate) store.getCertificate(alias);
                    byte[] hash = MessageDigest.getInstance("SHA-256").digest(certificate.getEncoded());
                    found.put(HexFormat.of().formatHex(hash), certificate.getSubjectX500Principal());
                }
            }
            return found;
        } catch (GeneralSecurityException | IOException error) {
            throw new IllegalStateException("the trust store of the test cannot be read", error);
        }
    }

    /** Return the names of all users in Kafka's tests. */
    private static List<String> users() {
        try {
            List<String> found = new ArrayList<>();
            found.add("");
            for (Field field : Class.forName("kafka.security.JaasTestUtils").getDeclaredFields()) {
                int modifiers = field.getModifiers();
                if (Modifier.isStatic(modifiers) && Modifier.isPublic(modifiers) && field.getType() == String.class
                        && Arrays.stream(new String[] {"USER", "ADMIN", "PRINCIPAL"}).anyMatch(field.getName()::contains)) {
                    found.add((String) field.get(null));
                }
            }
            return found;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static SSLSession session(X500Principal peer) {
        return Mockito.mock(SSLSession.class, withSettings().mockMaker(MockMakers.PROXY).stubOnly().defaultAnswer(
            call -> call.getMethod().getName().equals("getPeerPrincipal") ? peer : null));
    }

    private static SaslServer server(String user) {
        return Mockito.mock(SaslServer.class, withSettings().mockMaker(MockMakers.PROXY).stubOnly().defaultAnswer(
            call -> call.getMethod().getName().equals("getAuthorizationID") ? user : null));
    }
}
