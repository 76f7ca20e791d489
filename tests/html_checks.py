"""Whether a page is well formed, and a table as a part of one."""

from html.parser import HTMLParser

from riskbayes.pages.shell import environment

VOID = {"meta", "br", "wbr"}


class Checker(HTMLParser):
    """Every element is closed where it should be, and no id is used twice."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.note(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def note(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(html):
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    return checker


def as_html(table, links=None):
    """A table as a page shows it; `links` leads on from a first cell."""
    return environment("riskbayes.pages").get_template("macros.html").module.results(table, links or {})
