// What if the traveler had answered differently? A fork is a new run that begins with the messages
// of another run before a given number. The other run does not change, and both continue.
//   perdure worker --config examples/forked-conversation/perdure.config.ts
//   npx tsx examples/forked-conversation/main.ts
// The same from the command line: perdure fork RUN "Then by bicycle." --at 2
import type { PerdureClient } from 'perdure';

/** Returns lines with both answers and the origin of the second run. */
export async function whatIf(client: PerdureClient): Promise<readonly string[]> {
  const message = 'Three days in Norway, please.';
  const first = await client.start('planner', { message, open: true });
  await client.result(first, { turn: 1 });

  // Messages 0 and 1, the question and the answer, are copied; message 2 is not.
  await client.send(first, 'By train.');
  const byTrain = await client.result(first, { turn: 2 });
  const second = await client.fork(first, { at: 2, message: 'By bicycle.' });
  const byBicycle = await client.result(second);
  await client.close(first);

  const { forkedFrom } = await client.status(second);
  return [
    `${first.id}: ${byTrain.answer}`,
    `${second.id}: ${byBicycle.answer}`,
    `${second.id} is forked from ${forkedFrom?.run} before message ${forkedFrom?.at}`,
  ];
}
