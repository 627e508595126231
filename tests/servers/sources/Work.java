import java.util.*;
import java.util.concurrent.*;
import java.security.MessageDigest;

public class Work {
    static String chain(int seed) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        byte[] sum = new byte[32];
        List<byte[]> garbage = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            digest.update((byte) seed);
            sum = digest.digest(sum);
            garbage.add(new byte[4096]);
            if (garbage.size() > 500) garbage.clear();
        }
        return String.format("%02x%02x%02x%02x", sum[0], sum[1], sum[2], sum[3]);
    }
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<String>> results = new ArrayList<>();
        for (int t = 0; t < 8; t++) { final int seed = t; results.add(pool.submit(() -> chain(seed))); }
        for (Future<String> result : results) System.out.println(result.get());
        // For LOAD_S seconds it gets what it got at first.
        long end = System.nanoTime() + Integer.parseInt(System.getenv("LOAD_S")) * 1000000000L;
        List<Future<Boolean>> again = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            final int seed = t;
            final String first = results.get(t).get();
            again.add(pool.submit(() -> {
                boolean same = true;
                while (System.nanoTime() < end) same &= chain(seed).equals(first);
                return same;
            }));
        }
        for (Future<Boolean> one : again) System.out.println(one.get());
        pool.shutdown();
        try { int[] a = null; a[0] = 1; } catch (NullPointerException e) { System.out.println("null caught"); }
        try { deep(0); } catch (StackOverflowError e) { System.out.println("overflow caught"); }
    }
    static int deep(int n) { return deep(n + 1) + 1; }
}
