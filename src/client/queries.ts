import { isGrpcServiceError, type Client, type WorkflowExecutionInfo } from '@temporalio/client';

/** gRPC code: the namespace lacks the search attributes of the query. */
const INVALID_ARGUMENT = 3;

/**
 * Returns a condition on an attribute for a visibility query; by default, that it equals this
 * value.
 */
export function queryTerm(
  attribute: string,
  value: string,
  operator: '=' | '>=' | 'STARTS_WITH' = '=',
): string {
  // A backslash would escape the quote after it.
  return `${attribute} ${operator} '${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/**
 * Returns whether the server refused a query, as it does if the namespace lacks its search
 * attributes.
 */
export function isInvalidQuery(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code: number | null = isGrpcServiceError(cause) ? cause.code : null;
  return code === INVALID_ARGUMENT;
}

/**
 * A workflow that a query found. `byAttributes` is true for the query that uses search attributes.
 */
export interface FoundWorkflow {
  readonly info: WorkflowExecutionInfo;
  readonly byAttributes: boolean;
}

/**
 * Yields the workflows that `query` finds. If the namespace lacks its search attributes, yields
 * what `otherwise` finds, which uses none.
 */
export async function* withoutAttributes(
  client: Client,
  { query, otherwise }: { readonly query: string; readonly otherwise: string },
): AsyncGenerator<FoundWorkflow, void, undefined> {
  try {
    for await (const info of client.workflow.list({ query })) yield { info, byAttributes: true };
  } catch (error) {
    if (!isInvalidQuery(error)) throw error;
    for await (const info of client.workflow.list({ query: otherwise })) {
      yield { info, byAttributes: false };
    }
  }
}
