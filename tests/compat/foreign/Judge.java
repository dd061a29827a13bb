import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.spark.util.sketch.BloomFilter;

/**
 * Filters of Spark and Guava, as those programs write and read them: one command a line, one reply a line.
 *
 * <p>spark VERSION SEED ITEMS BITS KEYS: the bytes of a filter; sized ITEMS FPR: those of an empty one.
 * guava STRATEGY FUNNEL ITEMS FPR KEYS: likewise. ask-spark BYTES KEYS, ask-guava FUNNEL BYTES KEYS: 0 or 1 a key.
 * Keys are L and a number, or S and the UTF-8 bytes of a text, or B and bytes, in hexadecimal digits.
 */
public final class Judge {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
            System.out.flush();
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "spark":
                return writeSpark(words);
            case "sized":
                ByteArrayOutputStream sized = new ByteArrayOutputStream();
                BloomFilter.create(Long.parseLong(words[1]), Double.parseDouble(words[2])).writeTo(sized);
                return HEX.formatHex(sized.toByteArray());
            case "ask-spark":
                return askSpark(words);
            case "guava":
                return writeGuava(words);
            case "ask-guava":
                return askGuava(words);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static Object key(String word) {
        String rest = word.substring(1);
        switch (word.charAt(0)) {
            case 'L':
                return Long.parseLong(rest);
            case 'S':
                return new String(HEX.parseHex(rest), StandardCharsets.UTF_8);
            default:
                return HEX.parseHex(rest);
        }
    }

    private static String writeSpark(String[] words) throws Exception {
        BloomFilter.Version version = words[1].equals("1") ? BloomFilter.Version.V1 : BloomFilter.Version.V2;
        BloomFilter filter =
                BloomFilter.create(
                        version, Long.parseLong(words[3]), Long.parseLong(words[4]), Integer.parseInt(words[2]));
        for (int i = 5; i < words.length; i++) {
            filter.put(key(words[i]));
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        filter.writeTo(out);
        return HEX.formatHex(out.toByteArray());
    }

    private static String askSpark(String[] words) throws Exception {
        BloomFilter filter = BloomFilter.readFrom(new ByteArrayInputStream(HEX.parseHex(words[1])));
        StringBuilder found = new StringBuilder();
        for (int i = 2; i < words.length; i++) {
            found.append(filter.mightContain(key(words[i])) ? '1' : '0');
        }
        return found.toString();
    }

    private static Funnel<?> funnel(String name) {
        switch (name) {
            case "int":
                return Funnels.integerFunnel();
            case "long":
                return Funnels.longFunnel();
            case "bytes":
                return Funnels.byteArrayFunnel();
            case "utf-8":
                return Funnels.stringFunnel(StandardCharsets.UTF_8);
            default:
                return Funnels.unencodedCharsFunnel();
        }
    }

    private static Object guavaKey(String funnel, String word) {
        Object key = key(word);
        return funnel.equals("int") ? (Object) Math.toIntExact((Long) key) : key;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static String writeGuava(String[] words) throws Exception {
        // Only the default strategy is public.
        Class<?> strategy = Class.forName("com.google.common.hash.BloomFilter$Strategy");
        Class strategies = Class.forName("com.google.common.hash.BloomFilterStrategies");
        Object named = Enum.valueOf(strategies, words[1]);
        Method create =
                com.google.common.hash.BloomFilter.class.getDeclaredMethod(
                        "create", Funnel.class, long.class, double.class, strategy);
        create.setAccessible(true);
        com.google.common.hash.BloomFilter filter =
                (com.google.common.hash.BloomFilter)
                        create.invoke(
                                null,
                                funnel(words[2]),
                                Long.parseLong(words[3]),
                                Double.parseDouble(words[4]),
                                named);
        for (int i = 5; i < words.length; i++) {
            filter.put(guavaKey(words[2], words[i]));
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        filter.writeTo(out);
        return HEX.formatHex(out.toByteArray());
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static String askGuava(String[] words) throws Exception {
        com.google.common.hash.BloomFilter filter =
                com.google.common.hash.BloomFilter.readFrom(
                        new ByteArrayInputStream(HEX.parseHex(words[2])), (Funnel) funnel(words[1]));
        StringBuilder found = new StringBuilder();
        for (int i = 3; i < words.length; i++) {
            found.append(filter.mightContain(guavaKey(words[1], words[i])) ? '1' : '0');
        }
        return found.toString();
    }
}
