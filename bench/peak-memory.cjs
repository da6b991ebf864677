// Loaded with `node --require`: writes the peak memory in kB at exit. On Linux getrusage may report the parent's peak.
const { readFileSync, writeFileSync } = require("node:fs");

function peakKilobytes() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "latin1"))[1]);
  } catch {
    return process.resourceUsage().maxRSS;
  }
}

process.on("exit", () => writeFileSync(process.env.BENCH_PEAK_FILE, String(peakKilobytes())));
