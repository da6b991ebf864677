// The program of a thread that summarizes pieces of a journal ahead of who reads it.
import { workerData } from "node:worker_threads";
import { PieceBuffer } from "./scan.ts";
import { type PieceMessage, type PieceWork, shared, summaryOf, takePiece } from "./summaries.ts";

const { counters, port, end, ahead, isVerified, ...part } = workerData as PieceWork;
const buffer = new PieceBuffer();

for (;;) {
  const wanted = Atomics.load(counters, shared.wanted);
  const number = takePiece(counters, { end, reach: wanted + ahead });
  if (number === undefined) {
    if (Atomics.load(counters, shared.next) >= end) break;
    Atomics.wait(counters, shared.wanted, wanted);
    continue;
  }
  const facts = summaryOf(part, { number, isVerified, buffer });
  const message: PieceMessage = { number, facts };
  port.postMessage(message);
  Atomics.add(counters, shared.done, 1);
  Atomics.notify(counters, shared.done);
}
port.close();
