import type { Client } from '@temporalio/client';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import { listWorkflows, type ListedWorkflow } from '../temporal/server-answers.js';

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
  return grpcCode(error) === GRPC.invalidArgument;
}

/**
 * A workflow that a query found. `byAttributes` is true for the query that uses search attributes.
 */
export interface FoundWorkflow extends ListedWorkflow {
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
    for await (const found of listWorkflows(client, query)) yield { ...found, byAttributes: true };
  } catch (error) {
    if (!isInvalidQuery(error)) throw error;
    for await (const found of listWorkflows(client, otherwise)) {
      yield { ...found, byAttributes: false };
    }
  }
}
