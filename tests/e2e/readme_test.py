"""What README.md and docs/links.md show is what the program prints.

ISTHMUS_UPDATE_GOLDEN=1 writes the present output into it.
"""

import os
import pathlib
import re
import unittest

import isthmus_cli

ROOT = pathlib.Path(isthmus_cli.SOURCE_DIR)


class ReadmeTest(isthmus_cli.CliTest):
    def assert_shown(self, page, first_word, real):
        """`real` is the page's block of text that begins so."""
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        match = re.search(rf"```text\n({first_word} .*?)\n```", text, re.DOTALL)
        self.assertIsNotNone(match, f"{page} has no block that begins with {first_word}")
        if os.environ.get("ISTHMUS_UPDATE_GOLDEN"):
            path.write_text(text[:match.start(1)] + real + text[match.end(1):], encoding="utf-8")
        else:
            self.assertEqual(match.group(1), real)

    def test_shows_the_real_output(self):
        result = isthmus_cli.run("simulate", "scenarios/quickstart.yaml")
        self.assert_ends(result, 0)
        # The last lines name the commit, so they change with every one.
        self.assert_shown("README.md", "quickstart", result.stdout.split("\nscenario ")[0].rstrip())

    @unittest.skipUnless(isthmus_cli.HAS_FLOW, "SimGrid is not installed")
    def test_shows_the_real_links(self):
        command = re.search(r"isthmus (simulate scenarios/.*?)\n\n", (ROOT / "docs/links.md").read_text(encoding="utf-8"),
                            re.DOTALL).group(1)
        result = isthmus_cli.run(*command.replace("\\\n", " ").split())
        self.assert_ends(result, 0)
        links = "Links " + result.stdout.split("\nLinks ")[1].split("\n\n3 assumptions")[0]
        self.assert_shown("docs/links.md", "Links", links.rstrip())


if __name__ == "__main__":
    isthmus_cli.main()
