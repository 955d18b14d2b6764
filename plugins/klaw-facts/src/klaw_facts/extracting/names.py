"""Names by which people introduce themselves: "I'm Susan", "Я Анна", 我是王芳.

Most words after "I'm" are not names ("I'm Italian", "I'm Done"), and 我是 is followed by a profession more often than by a
name. So only common names are recognised, without those that are also other words for a person: nationalities, signs of
the zodiac, places that are more common.
"""

from __future__ import annotations

from functools import cache

from klaw_facts.extracting.known import parts_of, without_accents
from klaw_words.lazy_patterns import lazy_pattern

_GIVEN = """
Aaron Abby Abdul Abigail Ada Adam Adrian Adriana Agnes Ahmed Aidan Aisha Akira Alan Albert Alejandra Alejandro
Alessandro Alex Alexander Alexandra Alexandria Alexei Alexis Alfred Ali Alice Alicia Alina Alison Allison Alyssa Amanda
Amelia Amina Amir Amit Amy Ana Anastasia Anders Andrea Andreas Andrei Andrew Andy Angela Angelica Angelina Anil Anita
Anja Anjali Ann Anna Anne Annie Anthony Antoine Anton Antonio Anya Ariana Arjun Arthur Ashley Astrid Audrey Aurora Ava
Barbara Beatrice Beatriz Becky Ben Benjamin Bernard Beth Betty Bianca Bill Billy Birgit Blake Bob Bobby Boris Brad
Bradley Brandon Brenda Brett Brian Brianna Bridget Brittany Brooke Bruno Bryan Bryce Caitlin Caleb Calvin Camila Camille
Carl Carla Carlos Carmen Carol Carolina Caroline Carrie Cassandra Catherine Cathy Cecilia Charles Charlie Charlotte
Cheryl Chiara Chloe Chris Christina Christine Christopher Claire Clara Clarence Claudia Clifford Clyde Cody Colin
Colleen Connie Connor Corey Cory Courtney Craig Crystal Curtis Cynthia Damian Dan Daniel Daniela Danielle Danny Daria
Darlene Darrell Darryl Daryl David Deanna Debbie Deborah Debra Deepak Denis Dennis Derek Desiree Devin Diana Diane
Dianne Diego Dieter Dimitri Dmitri Dominic Donald Donna Doris Dorothy Doug Douglas Dustin Dwayne Dylan Edgar Edith
Edward Edwin Eileen Elaine Eleanor Elena Eli Elias Elijah Elin Elisa Elizabeth Ella Ellen Elliot Emil Emilia Emily Emma
Emmanuel Emre Enrique Eric Erica Erik Erika Erin Ernest Esther Ethan Eugene Eva Evan Eve Evelyn Fatima Felicia Felix
Fernanda Fernando Fiona Florian Floyd Frances Francesca Francesco Francis Francisco Franz Fred Frederick Freya Frida
Fritz Gabriel Gabriela Gabrielle Gail Gareth Gary Gavin Geoffrey George Gerald Gilbert Gina Giovanni Giulia Glenn Gloria
Gordon Greg Gregory Greta Guillermo Gustav Gwendolyn Hailey Haley Hana Hannah Hans Harold Harriet Harry Haruto Hassan
Heather Heidi Heike Helen Helena Henry Herbert Hiroshi Holly Howard Hugo Ian Ibrahim Ida Igor Ines Ingrid Irene Irina
Isaac Isabel Isabella Isabelle Ivan Jackie Jacob Jacques Jake James Jamie Jan Jane Janet Janice Jared Jasmine Jason
Javier Jean Jeff Jeffrey Jennifer Jenny Jens Jeremy Jerome Jerry Jesse Jessica Jill Jim Jimmy Joan Joanna Joao Jocelyn
Jodi Joe Joel Johan Johann Johanna John Jon Jonas Jonathan Jorge Jose Joseph Josephine Josh Joshua Joyce Juan Juana
Juanita Judith Judy Julia Julian Juliana Julie Juliet Jurgen Justin Kaitlyn Kamal Kara Karen Karl Kate Katelyn Katherine
Kathleen Kathryn Kathy Katie Katrina Kayla Keith Kelly Kelsey Ken Kendra Kenji Kenneth Kerry Kevin Khalid Kim Kimberly
Kirk Kirsten Klaus Krista Kristen Kristin Kristina Kristy Kumar Kurt Kyle Lara Larry Lars Laura Lauren Laurence Lawrence
Layla Lea Leah Leila Lena Lennart Leon Leonard Leonardo Leslie Lewis Leyla Liam Lidia Linda Lisa Liz Lorenzo Lori
Lorraine Lotte Louis Louisa Louise Luca Lucas Lucia Lucy Luis Luisa Lukas Luke Lydia Lynn Mackenzie Madeleine Madison
Magnus Makayla Malcolm Mallory Manuel Marc Marcel Marco Marcos Marcus Margaret Margarita Maria Mariam Marianne Marie
Marilyn Marina Mario Marion Marisa Marissa Markus Marta Martha Martin Martina Marvin Mary Mateo Mathieu Matilda Matt
Matteo Matthew Matthias Maureen Maurice Maya Megan Mehmet Melanie Melinda Melissa Meredith Mia Michael Michel Michelle
Miguel Mike Mikhail Mila Milan Miranda Miriam Mitchell Mohamed Mohammad Mohammed Molly Monica Monika Morgan Muhammad
Nadia Nadine Nancy Naomi Natalia Natalie Natasha Nathan Nathaniel Neha Neil Nia Nicholas Nicola Nicolas Nicole Nigel
Nikita Nikolai Nils Nina Noah Noel Nora Norman Oksana Olaf Oleg Olga Oliver Olivia Omar Oscar Oskar Otto Pablo Paige
Pamela Pascal Patricia Patrick Patty Paul Paula Pauline Pavel Pedro Peggy Pete Peter Phil Philip Philippe Pia Pierre
Polina Pooja Priscilla Priya Priyanka Rachel Rafael Rahul Raj Rajesh Ralph Ramon Randy Raquel Raul Ravi Raymond Rebecca
Regina Renata Rhonda Ricardo Richard Ricky Rita Robert Roberta Roberto Robin Robyn Roderick Rodney Rodrigo Roger Rohan
Roland Ron Ronald Rosa Rosemary Ross Roxana Roy Russell Ruth Ryan Sabine Sabrina Said Sally Salma Sam Samantha Samir
Samuel Sandra Sanjay Sara Sarah Scott Sean Sebastian Serena Sergei Sergio Seth Shane Shannon Sharon Shaun Shawn Sheila
Shelby Shelly Sherri Sherry Shirley Simon Simone Sofia Sonia Sonja Sophia Sophie Soren Spencer Stacey Stacy Stan Stanley
Stefan Stella Stephan Stephanie Stephen Steve Steven Stuart Sunil Sunita Suresh Susan Susanna Susanne Sven Svetlana
Sylvia Tabitha Tamara Tammy Tania Tanya Tara Tasha Tatiana Taylor Ted Teresa Terry Theo Theodore Theresa Thomas Tiffany
Tim Timothy Tina Tobias Todd Tom Tommy Tony Tonya Tracy Travis Trevor Tricia Troy Tyler Uma Ursula Uwe Valentina Valerie
Vanessa Vera Vernon Veronica Vicky Victor Vijay Viktor Vincent Viola Vivian Vladimir Walter Wanda Warren Wayne Wendy
Werner Whitney Wilhelm William Xavier Yasmin Yolanda Yuki Yuri Yusuf Yvonne Zach Zachary Zeynep Zoe
"""
_RUSSIAN = """
Александр Александра Алексей Алёна Алена Алина Алиса Алла Анастасия Анатолий Андрей Анна Антон Арина Артём Артем Борис
Вадим Валентин Валентина Валерий Валерия Варвара Василий Василиса Вера Вероника Виктор Виктория Виталий Владимир
Владислав Вячеслав Галина Геннадий Георгий Григорий Дарья Денис Дмитрий Ева Евгений Евгения Екатерина Елена Елизавета
Жанна Зоя Иван Игорь Илья Инна Ирина Карина Кирилл Константин Кристина Ксения Лариса Леонид Лидия Людмила Майя Максим
Маргарита Марина Мария Марк Матвей Михаил Надежда Наталия Наталья Никита Николай Нина Оксана Олег Олеся Ольга Павел
Пётр Петр Полина Роман Руслан Светлана Семён Семен Сергей Софья София Станислав Степан Тамара Татьяна Тимофей Тимур
Ульяна Фёдор Федор Эдуард Юлия Юрий Яна Ярослав Аня Вася Даша Дима Женя Катя Коля Костя Лёша Леша Лена Маша Миша Настя
Наташа Оля Паша Саша Серёжа Сережа Соня Таня Юля
"""
# The hundred most common surnames, and characters of given names.
_SURNAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧肖程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
_GIVEN_CHARACTERS = (
    "芳伟娜敏静丽强磊洋勇艳杰娟涛超霞刚玲燕鹏飞宇浩欣怡婷雪琳倩颖慧明亮峰波斌辉莉萍俊健华军兰秀英平桂建国志玉梅红轩梓涵雨萱晓佳嘉"
    "永春云龙凤珍凯晨阳博诺馨心语梦瑶泽林东新立德福荣成雷鑫帅旭宁琪瑞婧昊然睿悦彤薇楠蕾璐璇航翔宏庆振彬威兵"
)


def _any_of(names: str) -> str:
    return "|".join(sorted(names.split(), key=len, reverse=True))


#: A common given name, and perhaps a surname.
ENGLISH = rf"(?:{_any_of(_GIVEN)})(?!\w)(?:[ -](?:(?:de|van|von|der|la) )?[A-Z][a-z’'-]+){{0,2}}"
RUSSIAN = rf"(?:{_any_of(_RUSSIAN)})(?!\w)(?: [А-ЯЁ][а-яё]+){{0,2}}"
CHINESE = rf"[{_SURNAMES}][{_GIVEN_CHARACTERS}]{{1,2}}"
_CHINESE = lazy_pattern(r"[一-鿿]")
# What may follow a given name in a sentence and is no surname.
_NO_SURNAMES = """
and as but if is isnt let lets lol maybe never no none nor not now only or please so than then today too was wrong yet
"""


def is_given(name: str) -> bool:
    """Return whether a word is a known given name, in Latin or Russian letters."""
    return without_accents(name) in _given()


def is_name(value: str) -> bool:
    """Return whether a value is a name of a person: a known given name, and perhaps surnames."""
    if _CHINESE.search(value):
        return True  # the form is one of a common surname and a given name
    first, *others = value.split()
    return (is_given(first) or is_given(first.partition("-")[0])) and not any(
        (len(word) > 1 and word.isupper()) or word.replace("’", "").replace("'", "").casefold() in _NO_SURNAMES.split()
        for word in others
    )


@cache
def _given() -> frozenset[str]:
    return frozenset(name for part in parts_of("given_names.txt") for name in part)
