// What if the traveller had said something else? A fork is a new run that begins with the messages of
// another one up to a number; the other one stays as it is, and both go on.
//   perdure worker --config examples/forked-conversation/perdure.config.ts
//   npx tsx examples/forked-conversation/main.ts
// The same by hand: perdure fork RUN "Then by bicycle." --at 2
import type { PerdureClient } from 'perdure';

/** @returns lines that tell how it went both ways, and where the second one comes from */
export async function whatIf(client: PerdureClient): Promise<readonly string[]> {
  const message = 'Three days in Norway, please.';
  const first = await client.start('planner', { message, open: true });
  await client.result(first, { turn: 1 });

  // Number 2 is the first message that is not taken over: the question and the answer are.
  await client.ask(first, 'By train.');
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
