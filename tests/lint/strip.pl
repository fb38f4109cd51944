# SPDX-License-Identifier: Apache-2.0
# strip.pl - C without comments and without what stands in quotes: FILE<tab>LINE<tab>CODE for every line.
# Include lines keep their quotes. What is taken out becomes blanks, so that lines and columns stay.
use strict;
use warnings;

sub blank { my $text = shift; $text =~ s/[^\n]/ /g; return $text; }
sub quote { my $text = shift; return substr($text, 0, 1) . blank(substr($text, 1, -1)) . substr($text, -1); }

for my $path (@ARGV) {
    open my $in, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$in> } // '';
    $text =~ s{
        (^[\ \t]*\#[\ \t]*include[\ \t]*[<"][^>"\n]*[>"]) |
        (/\*.*?\*/ | //(?:\\\n|[^\n])*) |
        ("(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
    }{ defined $1 ? $1 : defined $2 ? blank($2) : quote($3) }gsmex;
    my $line = 0;
    print "$path\t", ++$line, "\t$_\n" for split /\n/, $text;
}
