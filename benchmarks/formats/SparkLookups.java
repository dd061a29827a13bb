import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.util.sketch.BloomFilter;

/**
 * Lookups of longs by Spark's own class, warmed up. Arguments: the filter's file, how many keys it has, and how many are looked
 * up. A line of input is the share of present keys in percent, and one round; the answer is nanoseconds of processor time a
 * key, and the number found. Keys are those of spark.py.
 */
public final class SparkLookups {
    public static void main(String[] args) throws Exception {
        BloomFilter filter = BloomFilter.readFrom(new ByteArrayInputStream(Files.readAllBytes(Path.of(args[0]))));
        long members = Long.parseLong(args[1]);
        int count = Integer.parseInt(args[2]);
        long[][] keys = new long[101][];
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int share = Integer.parseInt(line);
            if (keys[share] == null) {
                keys[share] = choose(members, count, share);
                for (int warm = 0; warm < 5; warm++) lookUp(filter, keys[share]);
            }
            long start = clock.getCurrentThreadCpuTime();
            int found = lookUp(filter, keys[share]);
            long took = clock.getCurrentThreadCpuTime() - start;
            System.out.println((double) took / count + " " + found);
        }
    }

    private static long[] choose(long members, int count, int share) {
        long[] keys = new long[count];
        for (int i = 0; i < count; i++) {
            long mixed = (i + 1) * 0x9e3779b97f4a7c15L;
            mixed = (mixed ^ (mixed >>> 30)) * 0xbf58476d1ce4e5b9L;
            mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
            mixed ^= mixed >>> 31;
            keys[i] = (mixed & 0xffff) % 100 < share ? (mixed >>> 16) % members : members + i;
        }
        return keys;
    }

    private static int lookUp(BloomFilter filter, long[] keys) {
        int found = 0;
        for (long key : keys) if (filter.mightContainLong(key)) found++;
        return found;
    }
}
