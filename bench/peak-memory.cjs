// The peak memory of the process it is loaded into (`node --require`), written at its end, in kilobytes.
// Where Linux tells it, VmHWM: the figure of getrusage begins with what the parent process had.
const { readFileSync, writeFileSync } = require("node:fs");

function peakKilobytes() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "latin1"))[1]);
  } catch {
    return process.resourceUsage().maxRSS;
  }
}

process.on("exit", () => writeFileSync(process.env.BENCH_PEAK_FILE, String(peakKilobytes())));
