import { createInterface } from 'node:readline/promises';

/** Asks a question at the terminal; returns whether the answer is yes. */
export async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`${question} yes / no `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
