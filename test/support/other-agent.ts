import { condition, continueAsNew, sleep } from '@temporalio/workflow';

/** Has the name of perdure's workflow and does something else, like a run of a changed build. */
export async function agent(input: { readonly continues?: boolean }): Promise<void> {
  if (input.continues) await continueAsNew<typeof agent>({});
  await sleep(1);
  await condition(() => false);
}

export async function greet(): Promise<string> {
  return 'hello';
}
