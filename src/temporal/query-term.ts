/**
 * Returns a condition on an attribute for a visibility query; by default, that it equals this
 * value.
 */
export function queryTerm(
  attribute: string,
  value: string,
  operator: '=' | '!=' | '>=' | 'STARTS_WITH' = '=',
): string {
  // A backslash would escape the quote after it.
  return `${attribute} ${operator} '${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
