"""What README.md shows is what the program prints.

ISTHMUS_UPDATE_GOLDEN=1 writes the present output into it.
"""

import os
import pathlib
import re

import isthmus_cli

README = pathlib.Path(isthmus_cli.SOURCE_DIR) / "README.md"
BLOCK = re.compile(r"```text\n(quickstart .*?)\n```", re.DOTALL)


class ReadmeTest(isthmus_cli.CliTest):
    def test_shows_the_real_output(self):
        result = isthmus_cli.run("simulate", "scenarios/quickstart.yaml")
        self.assert_ends(result, 0)
        # The last lines name the commit, so they change with every one.
        real = result.stdout.split("\nscenario ")[0].rstrip()
        text = README.read_text(encoding="utf-8")
        match = BLOCK.search(text)
        self.assertIsNotNone(match, "README.md has no report of the quickstart")
        if os.environ.get("ISTHMUS_UPDATE_GOLDEN"):
            README.write_text(text[:match.start(1)] + real + text[match.end(1):], encoding="utf-8")
        else:
            self.assertEqual(match.group(1), real)


if __name__ == "__main__":
    isthmus_cli.main()
