// The process of an engine: runs a conversation whenever it is asked to, and says when it has ended.
import { TOOL } from '../settings.js';

/** Answers the questions of the bench until it is gone. `run` ends with the conversation; so does `recover`, if the engine leaves that to the program. */
export function serve({ run, recover }) {
  process.on('message', (message) => {
    if (message === 'read') tell('read');
    if (message.run !== undefined)
      void report(message.run.id, run(message.run.id, message.run.message));
    if (message.recover !== undefined)
      void report(message.recover.id, recover?.(message.recover.id));
  });
  process.once('SIGTERM', () => process.exit(0));
  process.once('disconnect', () => process.exit(0));
  tell('ready');
}

/** The same tool as on Temporal. */
export async function work({ name, step, part, bytes }) {
  return `<${name} result ${step}.${part}>`.padEnd(bytes, ' lorem ipsum dolor sit amet');
}

export const description = TOOL.description;

async function report(id, ended) {
  try {
    await ended;
    tell(`ended ${id}`);
  } catch (error) {
    console.error(error);
    tell(`failed ${id}`);
  }
}

function tell(event) {
  const { user, system } = process.cpuUsage();
  const cpuMs = (user + system) / 1_000;
  process.send({ event, at: Date.now(), cpuMs, rssBytes: process.memoryUsage.rss() });
}
