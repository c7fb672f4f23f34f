const PROBLEM_CHARACTERS = 4_000;

/** What the model is told of an answer that does not keep to the contract. `attempt`: from 1. */
export function repairText(
  problem: string,
  { attempt, attempts }: { attempt: number; attempts: number },
): string {
  const told =
    problem.length <= PROBLEM_CHARACTERS ? problem : `${problem.slice(0, PROBLEM_CHARACTERS)}…`;
  return (
    `Your answer cannot be used (attempt ${attempt} of ${attempts}):\n${told}\n\n` +
    'Give the whole answer again, with this put right, and nothing beside it.'
  );
}
