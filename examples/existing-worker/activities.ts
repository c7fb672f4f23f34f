/** The texts of applications; yours are in a database. */
const applications = new Map([['a-1', 'Name: Ann. Plot: 17. Signed on Monday.']]);

export async function fetchApplication(id: string): Promise<string> {
  const text = applications.get(id);
  if (text === undefined) throw new Error(`no application ${id}`);
  return text;
}

export async function notify(id: string, accepted: boolean, reason: string): Promise<void> {
  console.log(`${id} is ${accepted ? 'accepted' : 'not accepted'}: ${reason}`);
}
