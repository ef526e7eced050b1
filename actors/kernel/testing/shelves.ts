/** Every story there is. */
import { edgeShelf } from '../../edge/testing/stories.ts';
import { jobShelf } from '../../job/testing/stories.ts';
import { projectShelf } from '../../project/testing/stories.ts';
import { requestShelf } from '../../request/testing/stories.ts';
import { rolloutShelf } from '../../rollout/testing/stories.ts';
import { sandboxShelf } from '../../sandbox/testing/stories.ts';
import type { Shelf } from './story.ts';

export const SHELVES: readonly Shelf[] = [sandboxShelf, requestShelf, edgeShelf, projectShelf, jobShelf, rolloutShelf];
