import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.BitSet;
import java.util.HexFormat;

/** The Bloom filter of a tutorial in Java: FNV-1a, its halves, an odd step. Reads texts, writes the bits in hex. */
final class Bits {
  public static void main(String[] words) throws Exception {
    int m = Integer.parseInt(words[1]);
    int k = Integer.parseInt(words[2]);
    BitSet bits = new BitSet(m);
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      long hash = 0xcbf29ce484222325L;
      for (byte b : line.getBytes(StandardCharsets.UTF_8)) {
        hash ^= b & 0xff;
        hash *= 0x100000001b3L;
      }
      int h1 = (int) hash;
      int h2 = (int) (hash >>> 32) | 1;
      for (int i = 0; i < k; i++) {
        int sum = h1 + i * h2;
        bits.set(
            switch (words[0]) {
              case "fnv1a-java" -> (sum & Integer.MAX_VALUE) % m;
              case "fnv1a-java-abs" -> Math.abs(sum % m);
              case "fnv1a-java-floor" -> Math.floorMod(sum, m);
              default -> (sum < 0 ? ~sum : sum) % m;
            });
      }
    }
    byte[] out = new byte[(m + 7) / 8];
    byte[] set = bits.toByteArray();
    System.arraycopy(set, 0, out, 0, set.length);
    System.out.println(HexFormat.of().formatHex(out));
  }
}
