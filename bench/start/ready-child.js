// A user's program in plain JavaScript: only the built package is loaded while the clock runs.
// Reports how long `createWorker` took, and when the worker polls.
const { createWorker, defineAgent, defineConfig } = await import(process.env.PACKAGE_DOOR);

const begun = performance.now();
const agent = defineAgent({ name: 'start', instructions: '', model: 'demo' });
const worker = await createWorker({
  config: defineConfig({ agents: [agent] }),
  address: process.env.ADDRESS,
  taskQueue: process.env.QUEUE,
});
process.send({ createMs: performance.now() - begun });
process.once('disconnect', () => void worker.shutdown());
await worker.stopped;
