// LevelDB through classic-level, which works on many requests at a time and answers in any order.
// Build: npm install classic-level. Usage: node level.mjs [nosync]
import { createInterface } from "node:readline";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";

const sync = process.argv[2] !== "nosync";
const claims = {
  protocol: "treering.exec/1", name: "leveldb", durable: sync ? "return" : "close",
  has: ["scan-back", "batch", "concurrent"],
  max_key: 1000, max_record: 16384, empty_key: false,
};
const bytes = (text) => Buffer.from(text, "hex");
let db;

async function open(dir) {
  const options = { keyEncoding: "buffer", valueEncoding: "buffer", writeBufferSize: 64 << 10 };
  db = new ClassicLevel(join(dir, "kv"), options);
  await db.open();
}

function batch(parts) {
  const changes = [];
  for (let i = 0; i < parts.length; i += 2) {
    const key = bytes(parts[i]);
    const value = parts[i + 1];
    changes.push(value === null ? { type: "del", key } : { type: "put", key, value: bytes(value) });
  }
  return db.batch(changes, { sync });
}

async function rows(range) {
  const found = await db.iterator(range).all();
  return { rows: found.flatMap(([key, value]) => [key.toString("hex"), value.toString("hex")]) };
}

async function respond(r) {
  switch (r.op) {
    case "hello": return claims;
    case "open": return open(r.dir);
    case "close": return db.close();
    case "get": {
      const value = await db.get(bytes(r.key)).catch((e) => {
        if (e.code !== "LEVEL_NOT_FOUND") throw e;
      });
      return { value: value === undefined ? null : value.toString("hex") };
    }
    case "put": return db.put(bytes(r.key), bytes(r.value), { sync });
    case "delete": return db.del(bytes(r.key), { sync });
    case "scan": return rows({ gte: bytes(r.from), limit: r.limit });
    case "scan-back": {
      const below = "below" in r ? { lt: bytes(r.below) } : {};
      return rows({ ...below, reverse: true, limit: r.limit });
    }
    case "batch": return batch(r.changes);
    case "crash": return process.kill(process.pid, "SIGKILL");
    default: throw new Error("unknown request " + r.op);
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const r = JSON.parse(line);
  respond(r).then(
    (answer) => answer,
    (e) => ({ error: "refused", why: String(e.message) }),
  ).then((answer) => process.stdout.write(JSON.stringify({ id: r.id, ...answer }) + "\n"));
}
