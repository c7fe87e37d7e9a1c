// H2's MVStore. Build: javac -cp h2-mvstore.jar MvStore.java
// Usage: java -cp h2-mvstore.jar:. MvStore
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.*;
import org.h2.mvstore.*;
import org.h2.mvstore.type.*;

public class MvStore {
    static final HexFormat HEX = HexFormat.of();
    static final Pattern FIELD = Pattern.compile("\"([a-z]+)\":(\"([^\"]*)\"|[0-9]+|\\[[^]]*])");
    static final String CLAIMS = ",\"protocol\":\"treering.exec/1\",\"name\":\"h2-mvstore\","
        + "\"durable\":\"sync\",\"has\":[\"scan-back\",\"sync\"],"
        + "\"max_key\":1000,\"max_record\":16384,\"empty_key\":true";
    static MVStore store;
    static MVMap<byte[], byte[]> map;

    /** Bytes in order without a sign. */
    static final class Bytes extends BasicDataType<byte[]> {
        @Override public int compare(byte[] a, byte[] b) {
            return Arrays.compareUnsigned(a, b);
        }
        @Override public int getMemory(byte[] bytes) {
            return 24 + bytes.length;
        }
        @Override public void write(WriteBuffer to, byte[] bytes) {
            to.putVarInt(bytes.length).put(bytes);
        }
        @Override public byte[] read(java.nio.ByteBuffer from) {
            byte[] bytes = new byte[DataUtils.readVarInt(from)];
            from.get(bytes);
            return bytes;
        }
        @Override public byte[][] createStorage(int size) {
            return new byte[size][];
        }
    }

    static void open(String dir) {
        store = new MVStore.Builder().fileName(dir + "/kv.mv").open();
        var builder = new MVMap.Builder<byte[], byte[]>();
        map = store.openMap("kv", builder.keyType(new Bytes()).valueType(new Bytes()));
    }

    static String rows(byte[] first, boolean back, int limit) {
        var out = new StringJoiner(",", ",\"rows\":[", "]");
        var cursor = first == null ? null : map.cursor(first, null, back);
        for (int n = 0; n < limit && cursor != null && cursor.hasNext(); n++) {
            byte[] key = cursor.next();
            out.add('"' + HEX.formatHex(key) + "\",\"" + HEX.formatHex(cursor.getValue()) + '"');
        }
        return out.toString();
    }

    static String respond(Map<String, String> r) {
        byte[] key = r.containsKey("key") ? HEX.parseHex(r.get("key")) : null;
        switch (r.get("op")) {
            case "hello": return CLAIMS;
            case "open": open(r.get("dir")); return "";
            case "close": store.close(); return "";
            case "get": {
                byte[] value = map.get(key);
                return ",\"value\":" + (value == null ? "null" : '"' + HEX.formatHex(value) + '"');
            }
            case "put": map.put(key, HEX.parseHex(r.get("value"))); return "";
            case "delete": map.remove(key); return "";
            case "scan":
                return rows(HEX.parseHex(r.get("from")), false, Integer.parseInt(r.get("limit")));
            case "scan-back": {
                String below = r.get("below");
                byte[] first = below == null ? map.lastKey() : map.lowerKey(HEX.parseHex(below));
                return rows(first, true, Integer.parseInt(r.get("limit")));
            }
            // `commit` hands the changes to the system, `sync` makes them durable.
            case "sync": store.commit(); store.sync(); return "";
            case "crash": Runtime.getRuntime().halt(1); return "";
            default: throw new IllegalArgumentException("unknown request " + r.get("op"));
        }
    }

    public static void main(String[] args) throws IOException {
        var latin = StandardCharsets.ISO_8859_1;
        var in = new BufferedReader(new InputStreamReader(System.in, latin), 1 << 16);
        var raw = new OutputStreamWriter(new FileOutputStream(FileDescriptor.out), latin);
        var out = new BufferedWriter(raw, 1 << 16);
        for (;;) {
            // Answers are written when no more requests wait.
            if (!in.ready()) {
                out.flush();
            }
            String line = in.readLine();
            if (line == null) {
                return;
            }
            var fields = new HashMap<String, String>();
            for (var m = FIELD.matcher(line); m.find();) {
                fields.put(m.group(1), m.group(3) != null ? m.group(3) : m.group(2));
            }
            String answer;
            try {
                answer = respond(fields);
            } catch (RuntimeException e) {
                var why = e.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ");
                answer = ",\"error\":\"refused\",\"why\":\"" + why + '"';
            }
            out.write("{\"id\":" + fields.get("id") + answer + "}\n");
        }
    }
}
