// A program of a user, as plain JavaScript: nothing but the built package is loaded while the clock
// runs. Says how long `createWorker` took, when it polls.
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
