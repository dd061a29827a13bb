import com.google.common.hash.Funnels;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.util.sketch.BloomFilter;

/**
 * Lookups by Spark and Guava themselves, warmed up: a line of input, "spark" or "guava", is one round over all keys; the
 * answer is nanoseconds of processor time a key, and the number found.
 */
public final class Jvm {
    public static void main(String[] args) throws Exception {
        BloomFilter spark = BloomFilter.readFrom(new ByteArrayInputStream(Files.readAllBytes(Path.of(args[0]))));
        com.google.common.hash.BloomFilter<CharSequence> guava =
                com.google.common.hash.BloomFilter.readFrom(
                        new ByteArrayInputStream(Files.readAllBytes(Path.of(args[1]))),
                        Funnels.stringFunnel(StandardCharsets.UTF_8));
        int longs = Integer.parseInt(args[2]), texts = Integer.parseInt(args[3]);
        long[] numbers = new long[longs];
        for (int i = 0; i < longs; i++) numbers[i] = i * 2L;
        String[] words = new String[texts];
        for (int i = 0; i < texts; i++) words[i] = "user-" + (i * 2) + "@example.com";
        for (int warm = 0; warm < 5; warm++) {
            sparkRound(spark, numbers);
            guavaRound(guava, words);
        }
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            long start = clock.getCurrentThreadCpuTime();
            int found = line.equals("spark") ? sparkRound(spark, numbers) : guavaRound(guava, words);
            long took = clock.getCurrentThreadCpuTime() - start;
            System.out.println((double) took / (line.equals("spark") ? longs : texts) + " " + found);
        }
    }

    private static int sparkRound(BloomFilter filter, long[] numbers) {
        int found = 0;
        for (long number : numbers) if (filter.mightContainLong(number)) found++;
        return found;
    }

    private static int guavaRound(com.google.common.hash.BloomFilter<CharSequence> filter, String[] words) {
        int found = 0;
        for (String word : words) if (filter.mightContain(word)) found++;
        return found;
    }
}
